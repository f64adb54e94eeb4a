"""Which tests of the conformance suite are about catalogs behind a server, too."""

from __future__ import annotations

from pathlib import Path

import pytest

# These steer the store behind the catalog or a part of it, set a catalog up, open a directory by
# its own class, or are about what does not go over the wire: the progress of a purge, a TTL of
# milliseconds.
NOT_REMOTE = {
    "test_a_catalog_opened_to_read_refuses_every_change",
    "test_a_creator_who_loses_leaves_no_directory",
    "test_a_location_that_is_purged_cannot_get_another_name",
    "test_a_location_that_is_purged_gets_no_other_name",
    "test_a_namespace_that_is_dropped_meanwhile_gets_no_child",
    "test_a_namespace_that_is_filled_meanwhile_is_not_dropped",
    "test_a_namespace_with_a_table_that_is_purged_does_not_come_back",
    "test_a_purge_deletes_every_byte_and_the_object",
    "test_a_purge_deletes_every_byte_and_the_row",
    "test_a_purge_tells_how_far_it_has_come",
    "test_a_purge_that_died_is_finished_by_anybody",
    "test_a_purge_that_died_is_finished_by_anybody_and_is_in_nobodys_way",
    "test_a_purge_that_died_keeps_nobody_from_the_name",
    "test_a_rename_speaks_the_words_of_the_specification",
    "test_a_request_for_a_column_of_no_or_two_definitions_is_refused",
    "test_a_request_to_alter_a_function_is_unsupported",
    "test_a_retention_that_is_said_wins",
    "test_a_table_is_read_at_a_version_tag_or_branch",
    "test_a_table_outside_of_the_root_is_never_deleted",
    "test_a_table_outside_of_the_root_is_written_and_never_deleted",
    "test_a_table_that_comes_back_while_its_status_is_read_is_never_told_as_not_there",
    "test_a_table_that_is_dropped_anew_since_it_was_seen_to_be_expired_stays",
    "test_a_tree_with_a_part_that_is_purged_does_not_come_back",
    "test_a_whole_life",
    "test_a_whole_life_in_a_bucket",
    "test_a_write_that_a_drop_comes_before_is_not_made",
    "test_all_tables_come_in_pages",
    "test_an_expired_namespace_goes_with_its_tables",
    "test_an_overwrite_of_a_table_that_is_dropped_meanwhile_is_no_success",
    "test_an_undrop_that_comes_first_keeps_the_files",
    "test_an_undrop_that_comes_second_is_refused",
    "test_an_update_loses_to_a_deletion",
    "test_an_update_that_others_overtake_is_made_on_what_they_left",
    "test_columns_are_added_filled_altered_and_dropped_by_requests",
    "test_commit_of_unknown_outcome_is_not_repeated",
    "test_every_kind_of_commit_of_lance_goes_through_the_catalog",
    "test_in_a_bucket_such_a_name_reaches_no_other_namespace",
    "test_lance_is_told_to_commit_through_the_catalog_where_it_is_asked_for",
    "test_locations_outside_of_the_root_are_allowed_by_a_setting",
    "test_metadata_of_the_schema_is_replaced_and_must_be_given",
    "test_namespaces_come_in_pages",
    "test_of_eight_creations_at_once_one_wins",
    "test_of_eight_declarations_at_once_one_wins",
    "test_of_two_that_alter_at_the_same_time_none_is_lost",
    "test_one_opened_catalog_serves_many_threads",
    "test_only_what_is_over_goes_with_the_expired",
    "test_pages_of_a_namespace_stay_right_while_names_come_and_go",
    "test_pylance_answers_the_same_to_the_same_changes",
    "test_setting_of_the_catalog_counts_for_whoever_opens_it",
    "test_skip_does_not_skip_what_is_there_and_in_the_way",
    "test_such_a_name_works_through_the_lance_namespace",
    "test_table_that_is_opened_through_the_catalog_commits_through_it",
    "test_tags_work_in_namespaces_and_with_names_that_uris_quote",
    "test_ten_names_of_many_cost_no_look_at_the_others",
    "test_the_location_that_a_deregistration_answers_is_one_to_register",
    "test_the_nearest_retention_counts_and_one_that_is_said_wins",
    "test_the_settings_of_a_metastore_are_its_own",
    "test_the_words_of_the_specification_do_the_same",
    "test_what_is_not_there_is_not_read",
    "test_what_steers_a_service_is_refused_and_not_ignored",
    "test_write_that_ends_after_a_drop_is_not_acknowledged",
}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    mine = [item for item in items if item.path.parent == here]
    dropped = [item for item in mine if _is_left_out(item)]
    for item in mine:
        item.add_marker(pytest.mark.interop)
    if dropped:
        config.hook.pytest_deselected(items=dropped)
        items[:] = [item for item in items if item not in dropped]


def _is_left_out(item: pytest.Item) -> bool:
    kinds = list(item.callspec.params.values()) if hasattr(item, "callspec") else []
    in_bucket = any(getattr(kind, "server", None) for kind in kinds)
    return in_bucket or getattr(item, "originalname", item.name) in NOT_REMOTE
