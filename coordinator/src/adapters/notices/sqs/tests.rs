//! Tests of the queues against a service of glass.

use super::*;
use async_trait::async_trait;
use drover_aws::{AwsError, Call, FailureKind, GroupName, HookAnswer, InstanceId};

/// A queue service: messages stay until they are deleted, and come again and again.
#[derive(Default)]
struct Service {
    messages: Mutex<Vec<QueueMessage>>,
    deleted: Mutex<Vec<String>>,
    broken: Mutex<Option<&'static str>>,
    receipts: Mutex<u32>,
}

impl Service {
    fn put(&self, id: &str, body: &str) {
        let message = QueueMessage {
            id: id.to_owned(),
            receipt: String::new(),
            body: body.to_owned(),
        };
        lock(&self.messages).push(message);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("lock")
}

#[async_trait]
impl AwsEvents for Service {
    async fn receive(
        &self,
        region: &Region,
        url: &str,
        _: u32,
    ) -> Result<Vec<QueueMessage>, AwsError> {
        if url.ends_with("dark") {
            let (call, kind) = (Call::ReceiveMessage, FailureKind::Permission);
            return match *lock(&self.broken) {
                Some(why) => Err(AwsError::unreported(
                    call,
                    region,
                    kind,
                    why.to_owned(),
                    false,
                )),
                None => Ok(Vec::new()),
            };
        }
        // AWS gives at most ten.
        let mut found: Vec<QueueMessage> = lock(&self.messages).iter().take(10).cloned().collect();
        *lock(&self.receipts) += 1;
        let receipt = *lock(&self.receipts);
        for message in &mut found {
            message.receipt = format!("{}@{receipt}", message.id);
        }
        tokio::task::yield_now().await;
        Ok(found)
    }
    async fn delete(&self, _: &Region, _: &str, receipts: &[String]) -> Result<(), AwsError> {
        assert!((1..=10).contains(&receipts.len()));
        for receipt in receipts {
            let id = receipt.split('@').next().expect("an id").to_owned();
            lock(&self.messages).retain(|message| message.id != id);
            lock(&self.deleted).push(id);
        }
        Ok(())
    }
    async fn heartbeat(
        &self,
        _: &Region,
        _: &GroupName,
        _: &str,
        _: &InstanceId,
    ) -> Result<(), AwsError> {
        Ok(())
    }
    async fn complete(
        &self,
        _: &Region,
        _: &GroupName,
        _: &str,
        _: &InstanceId,
        _: HookAnswer,
    ) -> Result<(), AwsError> {
        Ok(())
    }
}

fn spot(instance: &str) -> String {
    format!(
        r#"{{"detail-type":"EC2 Spot Instance Interruption Warning","time":"2026-03-01T10:00:00Z","detail":{{"instance-id":"{instance}","instance-action":"terminate"}}}}"#
    )
}

fn queue(name: &str) -> Queue {
    Queue {
        region: Region::new("eu-west-1"),
        url: format!("https://sqs.eu-west-1.amazonaws.com/1/{name}"),
    }
}

async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let limit = Duration::from_secs(20);
    drover_tests::wait::until_async(what, limit, async || holds().then_some(())).await;
}

#[tokio::test]
async fn a_message_is_deleted_only_after_it_is_settled_and_told_once_however_often_it_comes() {
    let service = Arc::new(Service::default());
    let queues = Queues::default();
    let rung = Arc::new(Mutex::new(0));
    let bell = rung.clone();
    queues.ring(move || *lock(&bell) += 1);
    service.put("m-1", &spot("i-1"));
    let api: Arc<dyn AwsEvents> = service.clone();
    queues.follow(&api, vec![queue("notices")]);
    until("told", || !queues.take().is_empty()).await;
    let receipts = *lock(&service.receipts);
    until("again", || *lock(&service.receipts) > receipts + 3).await;
    let told = queues.take();
    assert_eq!(told.len(), 1);
    let (instance, by) = (told[0].instance.as_str(), told[0].by.as_str());
    assert_eq!((instance, by), ("i-1", "eu-west-1/notices"));
    assert!(lock(&service.deleted).is_empty());
    assert!(*lock(&rung) > 0);
    queues.settle(&[told[0].id.clone()]);
    until("deleted", || !lock(&service.deleted).is_empty()).await;
    queues.stop();
    assert_eq!(lock(&service.deleted)[0], "m-1");
    assert!(queues.take().is_empty());
}

#[tokio::test]
async fn what_is_not_understood_is_deleted_and_counted_and_stops_nothing() {
    let service = Arc::new(Service::default());
    for n in 0..25 {
        service.put(&format!("odd-{n:02}"), "{\"half\":");
    }
    service.put("test", r#"{"Event":"autoscaling:TEST_NOTIFICATION"}"#);
    service.put("m-1", &spot("i-1"));
    let queues = Queues::default();
    let api: Arc<dyn AwsEvents> = service.clone();
    queues.follow(&api, vec![queue("notices")]);
    until("told", || !queues.take().is_empty()).await;
    until("deleted", || lock(&service.messages).len() == 1).await;
    assert!(queues.unknown() >= 25);
    assert_eq!(
        queues.take().len(),
        1,
        "and the one that says something waits"
    );
    assert_eq!(lock(&service.messages)[0].id, "m-1");
}

#[tokio::test]
async fn a_queue_that_cannot_be_read_is_named_and_the_other_goes_on() {
    let service = Arc::new(Service::default());
    *lock(&service.broken) = Some("AccessDenied");
    let queues = Queues::default();
    let api: Arc<dyn AwsEvents> = service.clone();
    queues.follow(&api, vec![queue("dark"), queue("notices")]);
    until("named", || !queues.troubles().is_empty()).await;
    let troubles = queues.troubles();
    assert_eq!(troubles.len(), 1);
    assert_eq!(troubles[0].0, "eu-west-1/dark");
    assert!(troubles[0].1.contains("AccessDenied"), "{}", troubles[0].1);
    service.put("m-1", &spot("i-1"));
    until("told", || !queues.take().is_empty()).await;
    *lock(&service.broken) = None;
    until("read again", || queues.troubles().is_empty()).await;
    // A config without it: what was received stays to be settled.
    queues.follow(&api, Vec::new());
    assert_eq!(queues.take().len(), 1);
}

/// EventBridge may write to a queue in another region; a hook writes to one in its own.
#[tokio::test]
async fn what_an_event_is_about_lies_in_its_own_region_whatever_its_queues_is() {
    let service = Arc::new(Service::default());
    let far = spot("i-far").replacen('{', r#"{"region":"us-east-1","#, 1);
    service.put("m-1", &far);
    service.put("m-2", &spot("i-near"));
    let queues = Queues::default();
    let api: Arc<dyn AwsEvents> = service.clone();
    queues.follow(&api, vec![queue("notices")]);
    until("told", || queues.take().len() == 2).await;
    let told = queues.take();
    let region = |id: &str| {
        let found = told.iter().find(|of| of.instance.as_str() == id);
        found.map(|of| of.region.as_str())
    };
    assert_eq!(region("i-far"), Some("us-east-1"));
    assert_eq!(region("i-near"), Some("eu-west-1"));
    queues.stop();
}
