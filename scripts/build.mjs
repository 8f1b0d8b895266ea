// `npm run build`: src/ into dist/, if anything has changed.
import { main, setup } from './setup.mjs'

await main(() => {
  setup()
  return 0
})
