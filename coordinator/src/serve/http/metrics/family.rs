//! A family of metrics and the sheet that its samples are written to. Used by the other files of `serve/http/metrics`.

use crate::control::pace::{BOUNDS_US, Spans};
use prometheus_client::encoding::{
    DescriptorEncoder, EncodeCounterValue, EncodeGaugeValue, MetricEncoder, NoLabelSet,
};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Unit;
use std::fmt;

/// A family: its name has neither the prefix nor the unit nor `_total`, which are written by its kind.
pub(super) struct Family {
    name: &'static str,
    help: &'static str,
    kind: MetricType,
    seconds: bool,
}

static SECONDS: Unit = Unit::Seconds;

impl Family {
    const fn new(name: &'static str, kind: MetricType, help: &'static str) -> Self {
        Self {
            name,
            help,
            kind,
            seconds: false,
        }
    }

    pub(super) const fn gauge(name: &'static str, help: &'static str) -> Self {
        Self::new(name, MetricType::Gauge, help)
    }

    pub(super) const fn counter(name: &'static str, help: &'static str) -> Self {
        Self::new(name, MetricType::Counter, help)
    }

    pub(super) const fn histogram(name: &'static str, help: &'static str) -> Self {
        Self::new(name, MetricType::Histogram, help)
    }

    pub(super) const fn info(name: &'static str, help: &'static str) -> Self {
        Self::new(name, MetricType::Info, help)
    }

    /// Its values are seconds, and its name says so.
    pub(super) const fn seconds(mut self) -> Self {
        self.seconds = true;
        self
    }
}

/// The labels of a sample, always the same names for one family.
pub(super) type Labels<'a, const N: usize> = [(&'static str, &'a str); N];

/// Where families are written, each in one go.
pub(super) struct Sheet<'a> {
    encoder: DescriptorEncoder<'a>,
}

impl<'a> Sheet<'a> {
    pub(super) const fn new(encoder: DescriptorEncoder<'a>) -> Self {
        Self { encoder }
    }

    fn open(&mut self, family: &Family) -> Result<MetricEncoder<'_>, fmt::Error> {
        let unit = family.seconds.then_some(&SECONDS);
        self.encoder
            .encode_descriptor(family.name, family.help, unit, family.kind)
    }

    /// A gauge with these samples.
    pub(super) fn gauges<'l, const N: usize, V: EncodeGaugeValue>(
        &mut self,
        family: &Family,
        samples: impl IntoIterator<Item = (Labels<'l, N>, V)>,
    ) -> fmt::Result {
        let mut metric = self.open(family)?;
        for (labels, value) in samples {
            metric.encode_family(&labels)?.encode_gauge(&value)?;
        }
        Ok(())
    }

    /// A counter with these samples.
    pub(super) fn counters<'l, const N: usize, V: EncodeCounterValue>(
        &mut self,
        family: &Family,
        samples: impl IntoIterator<Item = (Labels<'l, N>, V)>,
    ) -> fmt::Result {
        let mut metric = self.open(family)?;
        for (labels, value) in samples {
            metric
                .encode_family(&labels)?
                .encode_counter::<NoLabelSet, V, f64>(&value, None)?;
        }
        Ok(())
    }

    /// One value without labels.
    pub(super) fn gauge(&mut self, family: &Family, value: impl EncodeGaugeValue) -> fmt::Result {
        self.open(family)?.encode_gauge(&value)
    }

    /// One count without labels.
    pub(super) fn counter(&mut self, family: &Family, value: u64) -> fmt::Result {
        self.open(family)?
            .encode_counter::<NoLabelSet, u64, f64>(&value, None)
    }

    /// What does not change and has no value.
    pub(super) fn infos<'l, const N: usize>(
        &mut self,
        family: &Family,
        samples: impl IntoIterator<Item = Labels<'l, N>>,
    ) -> fmt::Result {
        let mut metric = self.open(family)?;
        for labels in samples {
            metric.encode_info(&labels)?;
        }
        Ok(())
    }

    /// Spans of time.
    pub(super) fn spans(&mut self, family: &Family, spans: &Spans) -> fmt::Result {
        let bounds = BOUNDS_US.iter().map(|us| seconds_of_us(*us));
        let buckets: Vec<(f64, u64)> = bounds
            .chain([f64::INFINITY])
            .zip(spans.buckets.iter().copied())
            .collect();
        self.open(family)?.encode_histogram::<NoLabelSet>(
            seconds_of_us(spans.sum_us),
            spans.count(),
            &buckets,
            None,
        )
    }
}

/// Exact below 2^53: microseconds of 285 years.
pub(super) const fn float(value: u64) -> f64 {
    value as f64
}

/// Microseconds as seconds.
pub(super) const fn seconds_of_us(us: u64) -> f64 {
    float(us) / 1e6
}

/// Milliseconds as seconds.
pub(super) const fn seconds(ms: u64) -> f64 {
    float(ms) / 1e3
}

/// For what holds or does not.
pub(super) const fn flag(holds: bool) -> u64 {
    holds as u64
}
