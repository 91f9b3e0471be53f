import AuthAccounts
import DocumentModel
import Identifiers
import Synchronization

/// The codes that production would send by e-mail or SMS.
///
/// They are kept in memory, as in Firebase's emulator: a restart forgets them. Beyond `countMax`
/// of a kind, the oldest are forgotten.
final class OneTimeCodes: Sendable {
  /// A code that a link in an e-mail contains.
  struct EmailCode: Sendable {
    /// The user whom the code was made for; nil for a sign-in, which may create the user.
    var localID: String?
    var email: String
    var newEmail: String?
    /// The purpose of the code, such as `PASSWORD_RESET`.
    var requestType: String
    var code: String
    /// The address of the page that uses the code.
    var link: String
  }

  /// A code that a short message contains.
  struct PhoneCode: Sendable {
    var phoneNumber: String
    /// The id of the request for the code, which the client sends back with it.
    var session: String
    var code: String
  }

  private struct State {
    var email: [EmailCode] = []
    var phone: [PhoneCode] = []
    /// The telephone numbers by the proof that a client knew their code.
    var proofs: [(proof: String, phoneNumber: String)] = []
  }

  private static let countMax = 1000

  private let state = Mutex(State())

  // MARK: - E-mail

  var emailCodes: [EmailCode] { state.withLock { $0.email } }

  /// Stores a code; `link` returns the link that contains it.
  func add(
    _ requestType: String,
    for localID: String?,
    email: String,
    newEmail: String?,
    link: (_ code: String) -> String
  ) -> EmailCode {
    let code = RandomID.make(length: 54)
    let entry = EmailCode(
      localID: localID,
      email: email,
      newEmail: newEmail,
      requestType: requestType,
      code: code,
      link: link(code)
    )
    state.withLock { $0.email.append(entry, keeping: Self.countMax) }
    return entry
  }

  /// Returns what a code is for; nil if it is unknown or used.
  func emailCode(_ code: String) -> EmailCode? {
    state.withLock { $0.email.first { $0.code == code } }
  }

  /// Uses a code while `body` runs; if `body` throws, the code can be used again.
  ///
  /// Throws `INVALID_OOB_CODE` if another request uses or has used it.
  func using<Result>(
    emailCode code: EmailCode,
    isolation: isolated (any Actor)? = #isolation,
    _ body: () async throws -> Result
  ) async throws -> Result {
    let isTaken = state.withLock { state in
      guard let index = state.email.firstIndex(where: { $0.code == code.code }) else {
        return false
      }
      state.email.remove(at: index)
      return true
    }
    try require(isTaken, "INVALID_OOB_CODE")
    do {
      return try await body()
    } catch {
      state.withLock { $0.email.append(code, keeping: Self.countMax) }
      throw error
    }
  }

  // MARK: - Telephone

  var phoneCodes: [PhoneCode] { state.withLock { $0.phone } }

  /// Stores a code of six digits for a telephone number.
  func addPhoneCode(for phoneNumber: String) -> PhoneCode {
    let digits = "\(Int.random(in: 0..<1_000_000))"
    let entry = PhoneCode(
      phoneNumber: phoneNumber,
      session: RandomID.make(length: 40),
      code: String(repeating: "0", count: 6 - digits.count) + digits
    )
    state.withLock { $0.phone.append(entry, keeping: Self.countMax) }
    return entry
  }

  /// Returns the code of a session; nil if there is none, or it was used.
  func phoneCode(session: String) -> PhoneCode? {
    state.withLock { $0.phone.first { $0.session == session } }
  }

  /// Removes the code of a session; returns false if another request has used it.
  func use(phoneSession session: String) -> Bool {
    state.withLock { state in
      guard let index = state.phone.firstIndex(where: { $0.session == session }) else {
        return false
      }
      state.phone.remove(at: index)
      return true
    }
  }

  /// Returns a proof that the client knew the code of a telephone number.
  func addProof(of phoneNumber: String) -> String {
    let proof = RandomID.make(length: 40)
    state.withLock { $0.proofs.append((proof, phoneNumber), keeping: Self.countMax) }
    return proof
  }

  /// Returns true for a proof that belongs to a telephone number, which can then not be used again.
  func use(proof: String, of phoneNumber: String) -> Bool {
    state.withLock { state in
      guard
        let index = state.proofs.firstIndex(where: {
          $0.proof == proof && $0.phoneNumber == phoneNumber
        })
      else { return false }
      state.proofs.remove(at: index)
      return true
    }
  }

  /// Forgets all codes.
  func removeAll() { state.withLock { $0 = State() } }
}

extension Array {
  /// Appends an element, and removes the first if there are then more than `countMax`.
  fileprivate mutating func append(_ element: Element, keeping countMax: Int) {
    append(element)
    if count > countMax { removeFirst() }
  }
}
