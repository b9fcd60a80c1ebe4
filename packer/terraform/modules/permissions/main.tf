# A role for the coordinator's host with the least that a mode needs. The policies beside this file are what
# `drover pools policy --mode MODE --doctor` prints, with `--fix` where the mode changes something; a test compares them.

variable "mode" {
  description = "observe (reads only), grow or full, as the highest mode of any pool."
  type        = string
  default     = "observe"
  validation {
    condition     = contains(["observe", "grow", "full"], var.mode)
    error_message = "mode is observe, grow or full."
  }
}

variable "name" {
  description = "Name of the role and of its instance profile."
  type        = string
  default     = "drover-coordinator"
}

variable "trusted" {
  description = "ARNs that may assume the role, for a coordinator outside EC2 or in another account; empty: EC2 itself."
  type        = list(string)
  default     = []
}

variable "queue_arns" {
  description = "Queues of notices that the coordinator reads."
  type        = list(string)
  default     = []
}

data "aws_iam_policy_document" "queues" {
  count = length(var.queue_arns) == 0 ? 0 : 1
  statement {
    actions   = ["sqs:ReceiveMessage", "sqs:DeleteMessage"]
    resources = var.queue_arns
  }
}

resource "aws_iam_role_policy" "queues" {
  count  = length(var.queue_arns) == 0 ? 0 : 1
  name   = "drover-queues"
  role   = aws_iam_role.this.id
  policy = data.aws_iam_policy_document.queues[0].json
}

data "aws_iam_policy_document" "trust" {
  statement {
    actions = ["sts:AssumeRole"]
    dynamic "principals" {
      for_each = length(var.trusted) == 0 ? [1] : []
      content {
        type        = "Service"
        identifiers = ["ec2.amazonaws.com"]
      }
    }
    dynamic "principals" {
      for_each = length(var.trusted) == 0 ? [] : [1]
      content {
        type        = "AWS"
        identifiers = var.trusted
      }
    }
  }
}

resource "aws_iam_role" "this" {
  name               = var.name
  assume_role_policy = data.aws_iam_policy_document.trust.json
}

resource "aws_iam_role_policy" "this" {
  name   = "drover-${var.mode}"
  role   = aws_iam_role.this.id
  policy = file("${path.module}/${var.mode}.json")
}

resource "aws_iam_instance_profile" "this" {
  name = var.name
  role = aws_iam_role.this.name
}

output "role_arn" {
  description = "For `role_arn` of Drover's pools, where the coordinator assumes the role."
  value       = aws_iam_role.this.arn
}

output "instance_profile" {
  description = "For the coordinator's own instance."
  value       = aws_iam_instance_profile.this.name
}
