variable "group" {
  description = "One of the `groups` of the module beside this one."
  type = object({
    name               = string
    mixed              = bool
    market             = string
    instance_types     = list(string)
    subnet_ids         = list(string)
    security_group_ids = list(string)
    image_id           = string
    root_gib           = number
    max                = number
    tags               = map(string)
  })
}

variable "coordinator" {
  description = "Where the coordinator listens, for instance https://coordinator.lab.example:7443."
  type        = string
}

variable "ca_sha256" {
  description = "SHA-256 of the coordinator's CA, which `drover serve` logs when it starts (ca=), and in which every join token ends. No secret."
  type        = string
  validation {
    condition     = can(regex("^[0-9a-f]{64}$", var.ca_sha256))
    error_message = "ca_sha256 is 64 hexadecimal digits."
  }
}
