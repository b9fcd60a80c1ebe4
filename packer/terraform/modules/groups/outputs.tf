output "groups" {
  description = "Each pool with its group's name and tags."
  value       = local.groups
}

output "by_region" {
  description = "The same by region."
  value       = local.by_region
}

output "drover_toml" {
  description = "The [[pool]] tables of these groups for drover.toml, all in mode observe."
  value       = join("\n\n", concat(local.tables, [""]))
}
