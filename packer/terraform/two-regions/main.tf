# Groups in two regions, as the README's section "Run it on AWS" uses them. Copy this directory with `modules` beside it, set
# the variables, and add a provider and a `module` block for each further region: Terraform cannot loop over providers.

terraform {
  required_version = ">= 1.11"
  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 5.60"
    }
  }
}

provider "aws" {
  region = "us-west-2"
}

provider "aws" {
  alias  = "us_east_1"
  region = "us-east-1"
}

module "groups" {
  source = "../modules/groups"
  pools  = var.pools
}

module "us_west_2" {
  source   = "../modules/group"
  for_each = lookup(module.groups.by_region, "us-west-2", {})

  group       = each.value
  coordinator = var.coordinator
  ca_sha256   = var.ca_sha256
}

module "us_east_1" {
  source    = "../modules/group"
  for_each  = lookup(module.groups.by_region, "us-east-1", {})
  providers = { aws = aws.us_east_1 }

  group       = each.value
  coordinator = var.coordinator
  ca_sha256   = var.ca_sha256
}

module "notices_us_west_2" {
  source = "../modules/notices"
}

module "notices_us_east_1" {
  source    = "../modules/notices"
  providers = { aws = aws.us_east_1 }
}

module "permissions" {
  source     = "../modules/permissions"
  mode       = var.mode
  trusted    = var.trusted
  queue_arns = [module.notices_us_west_2.queue_arn, module.notices_us_east_1.queue_arn]
}

# A pool of a region without a module block would be in Drover's config and not in AWS.
check "every_region_has_a_module" {
  assert {
    condition     = length(setsubtract(keys(module.groups.by_region), ["us-west-2", "us-east-1"])) == 0
    error_message = "A pool names a region that has no provider and module block in this file."
  }
}
