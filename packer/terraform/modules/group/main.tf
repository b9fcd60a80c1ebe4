# One Auto Scaling group as Drover wants it, so that `drover pools doctor` is silent: new members protected from
# scale-in, nothing else that ends members, metadata for root only, no secret in image or user data.

resource "aws_launch_template" "this" {
  name_prefix            = "${var.group.name}-"
  image_id               = var.group.image_id
  instance_type          = var.group.instance_types[0]
  update_default_version = true
  vpc_security_group_ids = var.group.security_group_ids
  # An instance that shuts itself down is not to wait stopped.
  instance_initiated_shutdown_behavior = "terminate"

  user_data = base64encode(templatefile("${path.module}/user-data.sh.tftpl", {
    coordinator = var.coordinator
    ca_sha256   = var.ca_sha256
  }))

  dynamic "instance_market_options" {
    for_each = var.group.market == "spot" && !var.group.mixed ? [1] : []
    content {
      market_type = "spot"
      spot_options {
        spot_instance_type             = "one-time"
        instance_interruption_behavior = "terminate"
      }
    }
  }

  block_device_mappings {
    device_name = "/dev/sda1"
    ebs {
      volume_size           = var.group.root_gib
      volume_type           = "gp3"
      encrypted             = true
      delete_on_termination = true
    }
  }

  # The identity document is a bearer secret: version 2 only, and no hop for containers.
  metadata_options {
    http_endpoint               = "enabled"
    http_tokens                 = "required"
    http_put_response_hop_limit = 1
  }

  tag_specifications {
    resource_type = "instance"
    tags          = { Name = var.group.name }
  }
}

resource "aws_autoscaling_group" "this" {
  name                = var.group.name
  min_size            = 0
  max_size            = var.group.max
  desired_capacity    = 0
  vpc_zone_identifier = var.group.subnet_ids

  # Only Drover ends members, drained, by id.
  protect_from_scale_in = true
  suspended_processes   = ["AZRebalance", "ReplaceUnhealthy"]
  capacity_rebalance    = false
  health_check_type     = "EC2"

  # Terraform is not to wait for capacity, and never to end a group that has members.
  wait_for_capacity_timeout = "0"
  force_delete              = false

  dynamic "launch_template" {
    for_each = var.group.mixed ? [] : [1]
    content {
      id      = aws_launch_template.this.id
      version = aws_launch_template.this.latest_version
    }
  }

  dynamic "mixed_instances_policy" {
    for_each = var.group.mixed ? [1] : []
    content {
      launch_template {
        launch_template_specification {
          launch_template_id = aws_launch_template.this.id
          version            = aws_launch_template.this.latest_version
        }
        dynamic "override" {
          for_each = var.group.instance_types
          content {
            instance_type = override.value
          }
        }
      }
      # One market a group: all of it on demand, or all of it spot.
      instances_distribution {
        on_demand_base_capacity                  = 0
        on_demand_percentage_above_base_capacity = var.group.market == "spot" ? 0 : 100
        on_demand_allocation_strategy            = "prioritized"
        spot_allocation_strategy                 = "price-capacity-optimized"
      }
    }
  }

  dynamic "tag" {
    for_each = var.group.tags
    content {
      key                 = tag.key
      value               = tag.value
      propagate_at_launch = false
    }
  }

  lifecycle {
    # Drover's: it claims the group by its tag, notes its asks on it, and suspends Launch for a moment to withdraw.
    ignore_changes = [desired_capacity, tag, suspended_processes]
  }
}

output "name" {
  description = "The group's name."
  value       = aws_autoscaling_group.this.name
}

output "arn" {
  description = "The group's ARN, for the permissions."
  value       = aws_autoscaling_group.this.arn
}
