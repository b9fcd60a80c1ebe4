variables {
  pools = {
    p4-usw2 = {
      region         = "us-west-2"
      instance_types = ["p4d.24xlarge"]
      subnet_ids     = ["subnet-0a", "subnet-0b"]
      image_id       = "ami-0123456789abcdef0"
      max            = 40
      labels         = { gpu = "a100" }
      taints         = { team = "vision:NoSchedule" }
    }
    g5-use1 = {
      region         = "us-east-1"
      instance_types = ["g5.xlarge", "g5.2xlarge"]
      subnet_ids     = ["subnet-1a"]
      image_id       = "ami-0123456789abcdef1"
      max            = 100
      market         = "spot"
    }
  }
}

run "names_tags_and_config_follow_from_the_pools" {
  command = plan

  assert {
    condition     = output.groups["p4-usw2"].name == "drover-p4-usw2"
    error_message = "the prefix stands before the name"
  }
  assert {
    condition = output.groups["p4-usw2"].tags == {
      "drover:owner"      = "unclaimed"
      "drover:pool"       = "p4-usw2"
      "drover:label/gpu"  = "a100"
      "drover:taint/team" = "vision:NoSchedule"
    }
    error_message = "a group carries the owner tag, its pool, labels and taints"
  }
  assert {
    condition     = output.groups["g5-use1"].mixed && !output.groups["p4-usw2"].mixed
    error_message = "several types make a mixed instances policy"
  }
  assert {
    condition     = keys(output.by_region) == ["us-east-1", "us-west-2"] && keys(output.by_region["us-west-2"]) == ["p4-usw2"]
    error_message = "groups are parted by region"
  }
  assert {
    condition     = strcontains(output.drover_toml, "group = \"drover-g5-use1\"\nmode = \"observe\"\nmax = 100\n")
    error_message = "Drover's config names the group, in observe"
  }
  assert {
    condition     = strcontains(output.drover_toml, "taints = { \"team\" = \"vision:NoSchedule\" }")
    error_message = "Drover's config has a taint as the tag has it"
  }
}

run "a_taint_without_its_effect_is_refused" {
  command = plan
  variables {
    pools = {
      bare = {
        region         = "us-east-1"
        instance_types = ["g5.xlarge"]
        subnet_ids     = ["subnet-1a"]
        image_id       = "ami-1"
        max            = 1
        taints         = { team = "vision" }
      }
    }
  }
  expect_failures = [var.pools]
}

run "a_mixed_market_is_refused" {
  command = plan
  variables {
    pools = {
      both = {
        region         = "us-east-1"
        instance_types = ["g5.xlarge"]
        subnet_ids     = ["subnet-1a"]
        image_id       = "ami-1"
        max            = 1
        market         = "mixed"
      }
    }
  }
  expect_failures = [var.pools]
}

run "a_zone_is_no_region" {
  command = plan
  variables {
    pools = {
      zone = {
        region         = "us-east-1a"
        instance_types = ["g5.xlarge"]
        subnet_ids     = ["subnet-1a"]
        image_id       = "ami-1"
        max            = 1
      }
    }
  }
  expect_failures = [var.pools]
}

run "a_pool_without_room_types_or_unit_is_refused" {
  command = plan
  variables {
    pools = {
      none = {
        region             = "us-east-1"
        instance_types     = []
        subnet_ids         = []
        image_id           = "ami-1"
        max                = 0
        provision_deadline = "15"
      }
    }
  }
  expect_failures = [var.pools]
}
