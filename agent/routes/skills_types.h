// Answers of /v1/skills, by the contract's names.
#pragma once

#include <string>
#include <vector>

#include "agent/routes/schema.h"
#include "agent/services/skills/skills.h"

namespace caisson::routes {

struct SkillRegistrationResult {
  std::int64_t count = 0;
  std::vector<services::Skill> registered;
};
struct SkillMetadataCollection {
  std::vector<services::Skill> skills;
};

template <>
struct Schema<services::DependencyResult> {
  using T = services::DependencyResult;
  static constexpr std::string_view name = "DependencyCommandResult";
  static constexpr auto fields =
      std::tuple{field("command", &T::command, "What was run, in the skill's folder"),
                 field("success", &T::success, "Whether it exited with 0"), field("stdout", &T::out, "The end of what it wrote"),
                 field("stderr", &T::err, "The end of its errors, or why it was not run or was ended")};
};
template <>
struct Schema<services::Skill> {
  using T = services::Skill;
  static constexpr std::string_view name = "SkillMetadata";
  static constexpr auto fields = std::tuple{
      field("name", &T::name, "Name of the skill and of its folder"), field("path", &T::path, "Absolute path of its folder"),
      field("metadata", &T::metadata, "Front matter of its SKILL.md").object().defaulted(),
      field("dependency_commands", &T::dependencies, "What was run for it when it was registered").defaulted()};
};
template <>
struct Schema<SkillRegistrationResult> {
  static constexpr std::string_view name = "SkillRegistrationResult";
  static constexpr auto fields = std::tuple{field("count", &SkillRegistrationResult::count, "How many were registered"),
                                            field("registered", &SkillRegistrationResult::registered, "The skills").defaulted()};
};
template <>
struct Schema<SkillMetadataCollection> {
  static constexpr std::string_view name = "SkillMetadataCollection";
  static constexpr auto fields = std::tuple{field("skills", &SkillMetadataCollection::skills, "By name").defaulted()};
};
template <>
struct Schema<services::SkillContent> {
  using T = services::SkillContent;
  static constexpr std::string_view name = "SkillContentResult";
  static constexpr auto fields =
      std::tuple{field("name", &T::name, "Name of the skill"), field("path", &T::path, "Absolute path of its folder"),
                 field("content", &T::content, "Its SKILL.md without front matter")};
};

}  // namespace caisson::routes
