//! Field cases as scripts: each file in `cases/` builds a fleet, plans, and carries the plan it must give.

mod engine;
mod first_come;
mod fleet;
mod invariants;
mod likely;
mod random;
mod redact;
mod removals;
mod reserved;
mod script;
mod seeds;
mod shares;
mod standoff;
mod words;

macro_rules! cases {
    ($($name:ident => $file:literal,)*) => {$(
        #[test]
        fn $name() {
            script::run($file);
        }
    )*};
}

cases! {
    sc_02_below_the_minimum_and_short => "sc_02",
    sc_03_preferred_pool_without_capacity => "sc_03",
    sc_04_shortage_storm => "sc_04",
    sc_06_grow_from_zero_twice => "sc_06",
    sc_08_gpus_that_never_come => "sc_08",
    sc_11_foreign_nodes => "sc_11",
    sc_12_trouble_stays_local => "sc_12",
    sc_17_a_job_lands_at_the_last_moment => "sc_17",
    sc_20_batch_is_not_packed => "sc_20",
    sc_21_draining_holds_nothing_up => "sc_21",
    sc_22_look_before_the_cordon => "sc_22",
    sc_26_a_site_falls_silent => "sc_26",
    sc_33_every_launch_ends => "sc_33",
    sc_36_own_machines_first_then_burst => "sc_36",
    sc_42_at_the_maximum_with_own_cordons => "sc_42",
    sc_47_gang_with_partial_capacity => "sc_47",
    sc_47_hold_over => "sc_47_over",
    sc_47_placed_by_a_scheduler => "sc_47_scheduler",
    sc_50_quota_of_twenty_nine => "sc_50",
    sc_51_the_record_goes_last => "sc_51",
    sc_52_system_pods_are_furniture => "sc_52",
    sc_53_uncordon_before_launching => "sc_53",
    sc_55_say_why => "sc_55",
    sc_57_count_the_coming_ones_once => "sc_57",
    sc_58_whose_cordon => "sc_58",
    sc_68_spare_is_a_standing_target => "sc_68",
    sc_69_unknown_type => "sc_69",
    sc_70_memory_outlives_the_loop => "sc_70",
    sc_74_idle_since_not_age => "sc_74",
    sc_75_two_selector_sets_one_pool => "sc_75",
    sc_76_exact_growth_separate_spare => "sc_76",
    sc_77_reuse_is_subtracted => "sc_77",
    sc_79_exclusive_units => "sc_79",
    sc_81_silent_nodes_are_no_supply => "sc_81",
    sc_83_instances_that_never_join => "sc_83",
    sc_84_jobs_are_work => "sc_84",
    sc_85_order_of_packing => "sc_85",
    sc_86_kept_only_if_it_helps => "sc_86",
    sc_91_the_schedulers_rules => "sc_91",
    sc_98_the_zone_that_was_asked => "sc_98",
    first_come_first_served => "first_come",
    gang_on_the_rack => "gang_on_the_rack",
    i8_an_impossible_gang_holds_nothing => "gang_impossible",
    hosts_that_are_away_are_named => "hosts_away",
    i9_what_is_coming_is_said => "coming",
    impossible_only_if_every_pool_was_read => "impossible",
    modes_forbid_and_explain => "modes",
    units_stay_out_of_dear_holes => "holes",
    rules_between_units => "near_rules",
    spread_over_zones_and_hosts => "spread",
    units_of_the_cluster_autoscaler => "ca_units",
    ports_of_the_host => "host_ports",
    shares_of_one_gpu => "gpu_shares",
    rules_about_labels => "node_rules",
    budgets_of_the_fleet => "budget",
    budgets_of_teams => "budget_teams",
    patience_for_work_that_ends => "patience",
    deadlines_that_a_boot_misses => "deadline",
    headroom_in_units_of_demand => "headroom",
    gangs_grow_towards_their_maximum => "gang_elastic",
    work_moves_only_where_it_says_so => "consolidate",
    old_nodes_go_once_empty => "expired",
    nodes_are_kept_for_likely_demand => "likely",
    units_go_where_they_keep_a_node_least_longer => "stays",
    disruption_budgets_and_the_quota => "disruption",
}
