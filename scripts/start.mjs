// `npm start`: the whole of Holdfast on this machine, from a fresh clone.
import { follow } from './follow.mjs'
import { main, setup } from './setup.mjs'

await main(() => {
  setup()
  return follow(['dist/cli/main.js', 'dev', ...process.argv.slice(2)])
})
