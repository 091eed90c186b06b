// The answer of GET /v1/sandbox: the contract's SandboxResponse and its parts, by the contract's names.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agent/routes/schema.h"
#include "agent/services/workspace/packages.h"

namespace caisson::routes {

struct ToolSpec {
  std::optional<std::string> ver, bin;
  std::vector<std::string> alias;
};
struct AvailableTool {
  std::string name;
  std::optional<std::string> description = "";
};
struct ToolCategory {
  std::string category;
  std::vector<AvailableTool> tools;
};
struct SystemEnv {
  std::string os, os_version, arch, user, home_dir;
  std::optional<std::string> workspace;
  std::string timezone;
  std::vector<std::string> occupied_ports;
};
struct RuntimeEnv {
  std::vector<ToolSpec> python, nodejs;
};
struct SandboxDetail {
  SystemEnv system;
  RuntimeEnv runtime;
  std::vector<ToolCategory> utils;
};
struct SandboxResponse {
  bool success = true;
  std::optional<std::string> message = "Operation successful";
  std::optional<std::string> data, hint;
  std::string home_dir;
  std::optional<std::string> workspace;
  std::string version;
  SandboxDetail detail;
};

template <>
struct Schema<services::Package> {
  static constexpr std::string_view name = "Package";
  static constexpr auto fields =
      std::tuple{field("name", &services::Package::name, "Name"), field("version", &services::Package::version, "Version")};
};
template <>
struct Schema<ToolSpec> {
  static constexpr std::string_view name = "ToolSpec";
  static constexpr auto fields =
      std::tuple{field("ver", &ToolSpec::ver, "Version"), field("bin", &ToolSpec::bin, "Path of the program"),
                 field("alias", &ToolSpec::alias, "Other names that start it").defaulted()};
};
template <>
struct Schema<AvailableTool> {
  static constexpr std::string_view name = "AvailableTool";
  static constexpr auto fields = std::tuple{field("name", &AvailableTool::name, "Name of the program"),
                                            field("description", &AvailableTool::description, "What it is for").defaulted()};
};
template <>
struct Schema<ToolCategory> {
  static constexpr std::string_view name = "ToolCategory";
  static constexpr auto fields = std::tuple{field("category", &ToolCategory::category, "Name of the category"),
                                            field("tools", &ToolCategory::tools, "The programs in it")};
};
template <>
struct Schema<SystemEnv> {
  static constexpr std::string_view name = "SystemEnv";
  static constexpr auto fields =
      std::tuple{field("os", &SystemEnv::os, "Operating system"),
                 field("os_version", &SystemEnv::os_version, "Its version"),
                 field("arch", &SystemEnv::arch, "Machine architecture"),
                 field("user", &SystemEnv::user, "User inside the sessions"),
                 field("home_dir", &SystemEnv::home_dir, "Home directory inside the sessions"),
                 field("workspace", &SystemEnv::workspace, "Default working directory"),
                 field("timezone", &SystemEnv::timezone, "Time zone"),
                 field("occupied_ports", &SystemEnv::occupied_ports, "TCP ports that the sandbox itself uses")};
};
template <>
struct Schema<RuntimeEnv> {
  static constexpr std::string_view name = "RuntimeEnv";
  static constexpr auto fields = std::tuple{field("python", &RuntimeEnv::python, "Python interpreters"),
                                            field("nodejs", &RuntimeEnv::nodejs, "Node.js interpreters")};
};
template <>
struct Schema<SandboxDetail> {
  static constexpr std::string_view name = "SandboxDetail";
  static constexpr auto fields =
      std::tuple{field("system", &SandboxDetail::system, ""), field("runtime", &SandboxDetail::runtime, ""),
                 field("utils", &SandboxDetail::utils, "Programs by purpose")};
};
template <>
struct Schema<SandboxResponse> {
  static constexpr std::string_view name = "SandboxResponse";
  static constexpr auto fields =
      std::tuple{field("success", &SandboxResponse::success, "Whether the operation was successful").defaulted(),
                 field("message", &SandboxResponse::message, "Operation result message").defaulted(),
                 field("data", &SandboxResponse::data, "The environment as text, for a model's prompt"),
                 field("hint", &SandboxResponse::hint, "Context hint for AI agents"),
                 field("home_dir", &SandboxResponse::home_dir, "Home directory inside the sessions"),
                 field("workspace", &SandboxResponse::workspace, "Default working directory"),
                 field("version", &SandboxResponse::version, "Version of the server"),
                 field("detail", &SandboxResponse::detail, "")};
};

}  // namespace caisson::routes
