# A queue of one region for what AWS tells before it acts: spot interruptions, rebalance recommendations, state changes,
# lifecycle actions, scheduled events. Without it Drover still hears most of it from the agents.

variable "name" {
  description = "Name of the queue and of its rules."
  type        = string
  default     = "drover-notices"
}

locals {
  rules = {
    spot-interruption = { source = "aws.ec2", type = "EC2 Spot Instance Interruption Warning" }
    rebalance         = { source = "aws.ec2", type = "EC2 Instance Rebalance Recommendation" }
    state-change      = { source = "aws.ec2", type = "EC2 Instance State-change Notification" }
    launching         = { source = "aws.autoscaling", type = "EC2 Instance-launch Lifecycle Action" }
    terminating       = { source = "aws.autoscaling", type = "EC2 Instance-terminate Lifecycle Action" }
    health            = { source = "aws.health", type = "AWS Health Event" }
  }
}

resource "aws_sqs_queue" "this" {
  name = var.name
  # A spot notice is worth two minutes, a hook an hour: what is older says nothing new.
  message_retention_seconds = 3600
  # Longer than a cycle: a message is deleted once its effect is stored.
  visibility_timeout_seconds = 60
  sqs_managed_sse_enabled    = true
}

data "aws_iam_policy_document" "queue" {
  statement {
    actions   = ["sqs:SendMessage"]
    resources = [aws_sqs_queue.this.arn]
    principals {
      type        = "Service"
      identifiers = ["events.amazonaws.com"]
    }
    condition {
      test     = "ArnEquals"
      variable = "aws:SourceArn"
      values   = [for _, rule in aws_cloudwatch_event_rule.this : rule.arn]
    }
  }
}

resource "aws_sqs_queue_policy" "this" {
  queue_url = aws_sqs_queue.this.id
  policy    = data.aws_iam_policy_document.queue.json
}

resource "aws_cloudwatch_event_rule" "this" {
  for_each = local.rules

  name = "${var.name}-${each.key}"
  event_pattern = jsonencode({
    source        = [each.value.source]
    "detail-type" = [each.value.type]
  })
}

resource "aws_cloudwatch_event_target" "this" {
  for_each = local.rules

  rule = aws_cloudwatch_event_rule.this[each.key].name
  arn  = aws_sqs_queue.this.arn
}

output "queue_url" {
  description = "For Drover's config."
  value       = aws_sqs_queue.this.id
}

output "queue_arn" {
  description = "For the permissions."
  value       = aws_sqs_queue.this.arn
}
