output "drover_toml" {
  description = "The [[pool]] tables for drover.toml."
  value       = module.groups.drover_toml
}

output "instance_profile" {
  description = "For the coordinator's own instance."
  value       = module.permissions.instance_profile
}
