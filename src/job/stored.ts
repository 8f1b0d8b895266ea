/** Inputs up to this many bytes travel in the row of their job. */
export const smallBytes = 500

/**
 * The type of a value after it was stored as JSON and read back: a Date comes back as a string, a method not at all. A field that is
 * undefined is left out, an element of a list is null instead.
 */
export type Stored<T> = T extends { toJSON(): infer J }
  ? Stored<J>
  : T extends string | number | boolean | null
    ? T
    : T extends void
      ? null
      : T extends readonly unknown[]
        ? { [I in keyof T]: Stored<T[I]> }
        : T extends object
          ? Flat<
              { [K in keyof T as Fate<T[K]> extends 'stays' ? K : never]: Stored<T[K]> } & {
                [K in keyof T as Fate<T[K]> extends 'optional' ? K : never]?: Stored<Exclude<T[K], undefined>>
              }
            >
          : unknown

/** What becomes of a field: it stays, may be missing, or is gone. */
type Fate<V> = unknown extends V
  ? 'stays'
  : [V] extends [((...args: never[]) => unknown) | undefined]
    ? 'gone'
    : undefined extends V
      ? 'optional'
      : 'stays'

/** One object type instead of several that are meant together. */
type Flat<T> = { [K in keyof T]: T[K] }
