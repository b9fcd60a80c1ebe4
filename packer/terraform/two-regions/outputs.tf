output "drover_toml" {
  description = "The [[pool]] tables for drover.toml."
  value       = module.groups.drover_toml
}

output "instance_profile" {
  description = "For the coordinator's own instance."
  value       = module.permissions.instance_profile
}

output "role_arn" {
  description = "The coordinator's role, for a host outside EC2 that assumes it (`trusted`)."
  value       = module.permissions.role_arn
}

output "queues_toml" {
  description = "The [[aws.queue]] tables for drover.toml."
  value = join("\n\n", [
    for region, url in {
      us-west-2 = module.notices_us_west_2.queue_url
      us-east-1 = module.notices_us_east_1.queue_url
    } : "[[aws.queue]]\nregion = ${jsonencode(region)}\nurl = ${jsonencode(url)}"
  ])
}
