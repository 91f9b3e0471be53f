/// The result builder of the block in `FunctionsApp`, which also accepts `if`, `switch` and loops.
@resultBuilder
public enum FunctionsBuilder {
  /// Adds one declared function.
  public static func buildExpression(_ function: some CloudFunction) -> [FunctionDefinition] {
    [function.definition]
  }

  /// Adds one function that has been modified after its declaration, such as a prepared function.
  public static func buildExpression(_ function: FunctionDefinition) -> [FunctionDefinition] {
    [function]
  }

  /// Adds the functions that another builder collected.
  public static func buildExpression(_ functions: [FunctionDefinition]) -> [FunctionDefinition] {
    functions
  }

  /// Joins the functions of all lines of a block.
  public static func buildBlock(_ lines: [FunctionDefinition]...) -> [FunctionDefinition] {
    lines.flatMap(\.self)
  }

  /// Adds the functions of an `if` without `else`; none if the condition is false.
  public static func buildOptional(_ lines: [FunctionDefinition]?) -> [FunctionDefinition] {
    lines ?? []
  }

  /// Adds the functions of the first branch of an `if` or `switch`.
  public static func buildEither(first lines: [FunctionDefinition]) -> [FunctionDefinition] {
    lines
  }

  /// Adds the functions of another branch of an `if` or `switch`.
  public static func buildEither(second lines: [FunctionDefinition]) -> [FunctionDefinition] {
    lines
  }

  /// Joins the functions of all iterations of a loop.
  public static func buildArray(_ turns: [[FunctionDefinition]]) -> [FunctionDefinition] {
    turns.flatMap(\.self)
  }
}
