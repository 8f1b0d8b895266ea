// All measures, in the order in which they run, and all their figures.
import { bulk } from './measures/bulk.mjs'
import { drain, drainByTwo } from './measures/drain.mjs'
import { loaded } from './measures/loaded.mjs'
import { mixed } from './measures/mixed.mjs'
import { oldSnapshot } from './measures/old-snapshot.mjs'
import { pickup } from './measures/pickup.mjs'
import { recovery } from './measures/recovery.mjs'
import { single } from './measures/single.mjs'

/** Every measure: its name, its figures, how it runs, and which contenders take part if not all. */
export const measures = [drain, drainByTwo, bulk, single, pickup, recovery, loaded, oldSnapshot, mixed]

/** Every figure by its key. */
export const figures = Object.assign({}, ...measures.map((measure) => measure.figures))
