# What follows from the pools without asking AWS: names, tags, and Drover's own config. It has no provider, so its tests
# run anywhere (`terraform test`).

locals {
  groups = {
    for name, pool in var.pools : name => merge(pool, {
      name  = "${var.prefix}${name}"
      mixed = length(pool.instance_types) > 1
      # Drover drives a group only with the owner tag; `unclaimed` lets one coordinator claim it. Labels and taints are
      # tags too, so that an empty group says what its nodes will be.
      tags = merge(
        {
          "drover:owner" = "unclaimed"
          "drover:pool"  = name
        },
        { for key, value in pool.labels : "drover:label/${key}" => value },
        { for key, value in pool.taints : "drover:taint/${key}" => value },
      )
    })
  }

  # Groups of one region, for a root module that calls `group` once per provider.
  by_region = {
    for region in distinct([for _, group in local.groups : group.region]) :
    region => { for name, group in local.groups : name => group if group.region == region }
  }

  tables = [
    for name in sort(keys(local.groups)) : join("\n", concat(
      [
        "[[pool]]",
        "name = ${jsonencode(name)}",
        "kind = \"asg\"",
        "site = ${jsonencode(local.groups[name].region)}",
        "region = ${jsonencode(local.groups[name].region)}",
        "group = ${jsonencode(local.groups[name].name)}",
        "mode = \"observe\"",
        "max = ${local.groups[name].max}",
        "provision_deadline = ${jsonencode(local.groups[name].provision_deadline)}",
      ],
      length(local.groups[name].labels) == 0 ? [] : [
        "labels = { ${join(", ", [for key, value in local.groups[name].labels : "${jsonencode(key)} = ${jsonencode(value)}"])} }",
      ],
      length(local.groups[name].taints) == 0 ? [] : [
        "taints = { ${join(", ", [for key, value in local.groups[name].taints : "${jsonencode(key)} = ${jsonencode(value)}"])} }",
      ],
    ))
  ]
}
