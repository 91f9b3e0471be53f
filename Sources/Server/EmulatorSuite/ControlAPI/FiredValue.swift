import DatabaseModel
import Events
import JSONText
import Manifests
import StatusCodes

/// The body of `POST /hearth/v1/functions/{name}/fire` for a change of a value that is not stored.
struct FiredValue {
  var change: DatabaseChange

  /// Parses `{"path": REF, "data": JSON, "before": JSON}`; throws `INVALID_ARGUMENT`.
  ///
  /// The instance is the one that the trigger names, or else the project's default.
  init(json: [UInt8], for trigger: FunctionEndpoint.EventTrigger, project: String) throws {
    guard let members = JSONObjectText(parsing: json) else {
      throw StatusError.invalidArgument("The body is not a JSON object.")
    }
    guard let text = members.text("path") else {
      throw StatusError.invalidArgument(
        "The function waits for values of the Realtime Database: give --path REF with --data or "
          + "--before."
      )
    }
    guard let path = DatabasePath(parsing: text), !path.isRoot else {
      throw StatusError.invalidArgument(
        "\"\(text)\" is not a path; write one such as presence/tina, whose keys have none of . $ # [ ]."
      )
    }
    func value(_ key: String) throws -> [UInt8] {
      guard let json = members[key] else { return DatabaseChange.absent }
      do {
        return try DatabaseInput(parsing: json).node.json(.objects)
      } catch {
        throw StatusError.invalidArgument("--\(key): \(error.message)")
      }
    }
    change = DatabaseChange(
      instance: trigger.eventFilters["instance"] ?? "\(project)-default-rtdb",
      path: path.keys,
      before: try value("before"),
      after: try value("data")
    )
    guard change.before != change.after else {
      throw StatusError.invalidArgument(
        "Nothing changes; give \"data\", \"before\" or both, which differ."
      )
    }
  }
}
