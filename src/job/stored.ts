/** The type of a value after it was stored as JSON and read back: a Date comes back as a string, a method not at all. */
export type Stored<T> = T extends { toJSON(): infer J }
  ? Stored<J>
  : T extends string | number | boolean | null
    ? T
    : T extends void
      ? null
      : T extends readonly unknown[]
        ? { [I in keyof T]: Stored<T[I]> }
        : T extends object
          ? { [K in keyof T as T[K] extends (...args: never[]) => unknown ? never : K]: Stored<T[K]> }
          : unknown
