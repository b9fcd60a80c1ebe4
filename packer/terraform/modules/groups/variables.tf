variable "pools" {
  description = "Pools by name: one Auto Scaling group each."
  type = map(object({
    # Where its group lives, for instance us-west-2.
    region = string
    # Types in order of preference; more than one makes a mixed instances policy.
    instance_types = list(string)
    # Subnets of the region, one per zone that may be used.
    subnet_ids = list(string)
    # An image with drover-agent in it (packer/provision.sh).
    image_id = string
    # Most nodes, here and in Drover's config.
    max = number
    # on-demand or spot. A group has one market: LaunchInstances cannot be used for groups that mix them.
    market = optional(string, "on-demand")
    # Security groups of the instances; outgoing to the coordinator's port is all that the agent needs.
    security_group_ids = optional(list(string), [])
    # Size of the root volume, GiB.
    root_gib = optional(number, 200)
    # Labels and taints of its nodes, matched by what work asks for. A taint is VALUE:EFFECT: { dedicated = "ml:NoSchedule" }.
    labels = optional(map(string), {})
    taints = optional(map(string), {})
    # From asked to joined, at most; metal boots slowly.
    provision_deadline = optional(string, "15m")
  }))

  validation {
    condition     = alltrue([for name, _ in var.pools : can(regex("^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$", name))])
    error_message = "A pool's name starts with a letter or digit, then letters, digits, dots, dashes; at most 63."
  }
  validation {
    condition     = alltrue([for _, pool in var.pools : contains(["on-demand", "spot"], pool.market)])
    error_message = "market is on-demand or spot; make two pools for both, since LaunchInstances refuses a mixed group."
  }
  validation {
    condition     = alltrue([for _, pool in var.pools : length(pool.instance_types) > 0 && length(pool.subnet_ids) > 0])
    error_message = "Each pool needs at least one of instance_types and one of subnet_ids."
  }
  validation {
    condition     = alltrue([for _, pool in var.pools : pool.max >= 1 && floor(pool.max) == pool.max])
    error_message = "max is a whole number of nodes, at least 1."
  }
  validation {
    condition     = alltrue([for _, pool in var.pools : can(regex("^[a-z]{2}(-[a-z]+)+-[0-9]$", pool.region))])
    error_message = "region is a region's name such as us-west-2, no zone."
  }
  validation {
    condition = alltrue(flatten([
      for _, pool in var.pools : [
        for _, taint in pool.taints : can(regex("^[^:]*:(NoSchedule|NoExecute|PreferNoSchedule)$", taint))
      ]
    ]))
    error_message = "A taint is VALUE:EFFECT, for instance dedicated = \"ml:NoSchedule\"; effects are NoSchedule and NoExecute."
  }
  validation {
    condition     = alltrue([for _, pool in var.pools : can(regex("^[0-9]+(s|m|h)$", pool.provision_deadline))])
    error_message = "provision_deadline needs a unit, for instance 15m."
  }
}

variable "prefix" {
  description = "Before each group's name."
  type        = string
  default     = "drover-"
}
