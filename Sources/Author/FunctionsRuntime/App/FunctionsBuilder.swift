/// Collects functions: one or several lines, with `if`, `switch` and loops.
@resultBuilder
public enum FunctionsBuilder {
  /// One function.
  public static func buildExpression(_ function: some CloudFunction) -> [FunctionDefinition] {
    [function.definition]
  }

  /// One function that is more than a declaration, such as a prepared one.
  public static func buildExpression(_ function: FunctionDefinition) -> [FunctionDefinition] {
    [function]
  }

  /// Functions that another builder has collected.
  public static func buildExpression(_ functions: [FunctionDefinition]) -> [FunctionDefinition] {
    functions
  }

  /// All lines of a block.
  public static func buildBlock(_ lines: [FunctionDefinition]...) -> [FunctionDefinition] {
    lines.flatMap(\.self)
  }

  /// An `if` without `else`.
  public static func buildOptional(_ lines: [FunctionDefinition]?) -> [FunctionDefinition] {
    lines ?? []
  }

  /// The first branch of an `if` or `switch`.
  public static func buildEither(first lines: [FunctionDefinition]) -> [FunctionDefinition] {
    lines
  }

  /// The other branch of an `if` or `switch`.
  public static func buildEither(second lines: [FunctionDefinition]) -> [FunctionDefinition] {
    lines
  }

  /// A loop.
  public static func buildArray(_ turns: [[FunctionDefinition]]) -> [FunctionDefinition] {
    turns.flatMap(\.self)
  }
}
