import StorageEngine

/// The planned distribution of shards among dispatchers: a value that decides and never acts.
///
/// Dispatchers need no common clock. A dispatcher considers another one gone if its row has not
/// changed for a number of the observer's own heartbeats.
struct ClaimPlan: Sendable {
  /// The claims and dispatchers found in storage.
  struct Board: Sendable {
    /// The version of each dispatcher's row, by the dispatcher's id.
    var dispatchers: [String: UInt64] = [:]
    /// The owner and the version of each shard's row.
    var shards: [Shard: (owner: String, version: UInt64)] = [:]
  }

  /// The changes to make to claims and dispatcher rows.
  struct Moves: Sendable, Equatable {
    /// Shards to claim, with the version that their row must have.
    ///
    /// A nil version requires that there is no row.
    var claims: [Shard: UInt64?] = [:]
    /// Shards to release for another dispatcher once none of their deliveries runs.
    var releases: Set<Shard> = []
    var gone: Set<String> = []
  }

  let id: String
  /// The number of heartbeats without a sign of life after which a dispatcher is considered gone.
  static let missedHeartbeatsMax = 4
  private var seen: [String: (version: UInt64, missedHeartbeats: Int)] = [:]

  init(id: String) {
    self.id = id
  }

  /// Computes the changes to make; called once per heartbeat.
  mutating func heartbeat(_ board: Board) -> Moves {
    for (other, version) in board.dispatchers where other != id {
      if let known = seen[other], known.version == version {
        seen[other]?.missedHeartbeats += 1
      } else {
        seen[other] = (version, 0)
      }
    }
    seen = seen.filter { board.dispatchers[$0.key] != nil }
    let gone = Set(seen.filter { $0.value.missedHeartbeats >= Self.missedHeartbeatsMax }.keys)
    let members = ([id] + seen.keys.filter { !gone.contains($0) }).sorted()
    var moves = Moves(gone: gone)
    for shard in Shard.all + [.expansion] {
      let wanted = members[Int(shard.number) % members.count]
      let row = board.shards[shard]
      if row?.owner == id {
        if wanted != id { moves.releases.insert(shard) }
      } else if wanted == id, row.map({ !members.contains($0.owner) }) ?? true {
        moves.claims[shard] = .some(row?.version)
      }
    }
    return moves
  }
}
