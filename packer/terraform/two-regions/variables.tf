variable "pools" {
  description = "Pools by name; the fields are in modules/groups/variables.tf."
  type        = any
}

variable "coordinator" {
  description = "Where the coordinator listens, for instance https://coordinator.lab.example:7443."
  type        = string
}

variable "ca_sha256" {
  description = "SHA-256 of the coordinator's CA. No secret."
  type        = string
}

variable "trusted" {
  description = "ARNs that may assume the coordinator's role, for a coordinator outside EC2; empty: EC2 instances alone."
  type        = list(string)
  default     = []
}

variable "mode" {
  description = "Permissions of the coordinator's role: observe, grow or full."
  type        = string
  default     = "observe"
}
