//! A small tree of XML elements that can be changed and written again.
//!
//! Used by the proxy to rewrite moto's replies and to write its own. Attributes are dropped, except that a
//! root written with a namespace carries it; AWS's replies have no others that matter.

use std::fmt::Write as _;

/// An element: a name and either children or text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Element {
    pub(super) name: String,
    pub(super) text: String,
    pub(super) children: Vec<Element>,
}

impl Element {
    /// An element with text.
    pub(super) fn leaf(name: &str, text: impl Into<String>) -> Self {
        Self {
            name: name.to_owned(),
            text: text.into(),
            children: Vec::new(),
        }
    }

    /// An element with children.
    pub(super) fn node(name: &str, children: Vec<Element>) -> Self {
        Self {
            name: name.to_owned(),
            text: String::new(),
            children,
        }
    }

    /// Reads a document.
    pub(super) fn parse(text: &str) -> Result<Self, roxmltree::Error> {
        Ok(Self::from(roxmltree::Document::parse(text)?.root_element()))
    }

    fn from(node: roxmltree::Node<'_, '_>) -> Self {
        let children: Vec<_> = node
            .children()
            .filter(roxmltree::Node::is_element)
            .map(Self::from)
            .collect();
        let text = if children.is_empty() {
            node.text().unwrap_or_default().to_owned()
        } else {
            String::new()
        };
        Self {
            name: node.tag_name().name().to_owned(),
            text,
            children,
        }
    }

    /// The first child of that name.
    pub(super) fn child(&self, name: &str) -> Option<&Element> {
        self.children.iter().find(|c| c.name == name)
    }

    /// The first child of that name.
    pub(super) fn child_mut(&mut self, name: &str) -> Option<&mut Element> {
        self.children.iter_mut().find(|c| c.name == name)
    }

    /// The text of the first child of that name, or nothing.
    pub(super) fn text_of(&self, name: &str) -> &str {
        self.child(name).map_or("", |c| c.text.as_str())
    }

    /// Sets the text of the child of that name, which is made if it is not there.
    pub(super) fn set_text(&mut self, name: &str, text: impl Into<String>) {
        let text = text.into();
        match self.child_mut(name) {
            Some(child) => *child = Element::leaf(name, text),
            None => self.children.push(Element::leaf(name, text)),
        }
    }

    /// Every element of that name below, at any depth, changed by `change`.
    pub(super) fn each_mut(&mut self, name: &str, change: &mut impl FnMut(&mut Element)) {
        for child in &mut self.children {
            if child.name == name {
                change(child);
            }
            child.each_mut(name, change);
        }
    }

    /// Every element below, at any depth, the outer ones first.
    pub(super) fn every_mut(&mut self, change: &mut impl FnMut(&mut Element)) {
        for child in &mut self.children {
            change(child);
            child.every_mut(change);
        }
    }

    /// The document's text, with `namespace` on the root.
    pub(super) fn document(&self, namespace: &str) -> String {
        let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
        self.write(&mut out, Some(namespace));
        out
    }

    fn write(&self, out: &mut String, namespace: Option<&str>) {
        out.push('<');
        out.push_str(&self.name);
        if let Some(namespace) = namespace {
            let _ = write!(out, " xmlns=\"{namespace}\"");
        }
        out.push('>');
        for c in self.text.chars() {
            match c {
                '&' => out.push_str("&amp;"),
                '<' => out.push_str("&lt;"),
                '>' => out.push_str("&gt;"),
                other => out.push(other),
            }
        }
        for child in &self.children {
            child.write(out, None);
        }
        let _ = write!(out, "</{}>", self.name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_is_written() {
        let text = "<a xmlns=\"n\"><b>1 &lt; 2 &amp; 3</b><c><member>x</member></c></a>";
        let mut tree = Element::parse(text).expect("parses");
        assert_eq!(tree.text_of("b"), "1 < 2 & 3");
        tree.set_text("d", "new");
        assert_eq!(
            tree.document("n"),
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<a xmlns=\"n\"><b>1 &lt; 2 &amp; 3</b><c><member>x</member></c><d>new</d></a>"
        );
    }
}
