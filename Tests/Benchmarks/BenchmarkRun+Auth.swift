import Foundation
import NIOCore

/// Measurements of the Auth service: sign-ups, sign-ins, checked tokens, and many users.
extension BenchmarkRun {
  private static let authClients = [1, 16]
  private static let manyUsers = 100_000

  /// Measures requests of apps, then the memory and the start of a suite with many users.
  func measureAuth() async throws {
    let data = ["--no-functions", "--data", hearth.folder + "/auth"]
    try await hearth.run(data) { server in
      let auth = AuthLoad(address: server.auth, project: server.project)
      for clients in Self.authClients {
        let tag = "c\(clients)"
        figures.record(
          .signUpsPerSecond(clients: clients),
          try await load(clients).run(auth.connect("signUp")) { client, number in
            auth.credentials(tag, client, number)
          }
        )
        figures.record(
          .signInsPerSecond(clients: clients),
          try await load(clients).run(auth.connect("signInWithPassword")) { client, _ in
            auth.credentials(tag, client, 0)
          }
        )
        let tokens = try await auth.tokens(tag, clients: clients)
        figures.record(
          .tokenChecksPerSecond(clients: clients),
          try await load(clients).run(auth.connect("lookup")) { client, _ in tokens[client] }
        )
      }
      let begin = ContinuousClock.now
      try await auth.upload(Self.manyUsers)
      let seconds = (ContinuousClock.now - begin) / .seconds(1)
      figures.record(.importedUsersPerSecond, Double(Self.manyUsers) / seconds)
    }
    let clock = ContinuousClock()
    let began = clock.now
    try await hearth.run(data) { server in
      let auth = AuthLoad(address: server.auth, project: server.project)
      _ = try await auth.tokens("c1", clients: 1)
      figures.record(.usersStartMilliseconds, (clock.now - began) / .milliseconds(1))
      recordMemory(.usersMegabytes, of: .hearth, ProcessMemory.megabytes(server.processID))
    }
  }
}

/// The requests to an Auth service.
private struct AuthLoad: Sendable {
  var address: Address
  var project: String

  func connect(_ method: String) -> Load.Connect {
    { [address] loop in
      HTTP1Connection.connect(
        to: address,
        path: "/identitytoolkit.googleapis.com/v1/accounts:\(method)?key=any",
        on: loop
      )
    }
  }

  func credentials(_ tag: String, _ client: Int, _ number: Int) -> ByteBuffer {
    ByteBuffer(
      string: #"{"email":"\#(tag)-\#(client)-\#(number)@e.example","password":"secret1"}"#
    )
  }

  /// Signs in the first user of each client and returns the bodies that look up their tokens.
  func tokens(_ tag: String, clients: Int) async throws -> [ByteBuffer] {
    struct Reply: Decodable { var idToken: String }
    let series = RequestSeries(
      address: address,
      path: "/identitytoolkit.googleapis.com/v1/accounts:signInWithPassword?key=any"
    )
    return try await series.run(count: clients) { credentials(tag, $0, 0) }.map { reply in
      let token = try JSONDecoder().decode(Reply.self, from: Data(reply.body.readableBytesView))
        .idToken
      return ByteBuffer(string: #"{"idToken":"\#(token)"}"#)
    }
  }

  /// Imports users without passwords, a thousand in each request.
  func upload(_ count: Int) async throws {
    let series = RequestSeries(
      address: address,
      path: "/identitytoolkit.googleapis.com/v1/projects/\(project)/accounts:batchCreate",
      authorization: "Bearer owner"
    )
    _ = try await series.run(count: count / 1000) { page in
      let users = (0..<1000).map { index in
        let id = "u\(page * 1000 + index)"
        return #"{"localId":"\#(id)","email":"\#(id)@many.example","displayName":"User \#(id)"}"#
      }
      return ByteBuffer(string: #"{"users":[\#(users.joined(separator: ","))]}"#)
    }
  }
}
