// Runs many command lines in one process, one after the other, and prints the output of each: starting Node for each of them would take
// most of a minute.
import { runCommand } from '../../dist/cli/program.js'

const answers = []
for (const args of JSON.parse(process.argv[2])) {
  const said = { stdout: '', stderr: '' }
  const real = Object.fromEntries(Object.keys(said).map((name) => [name, process[name].write]))
  for (const name of Object.keys(said))
    process[name].write = (chunk, ...rest) => {
      said[name] += chunk
      rest.find((one) => typeof one === 'function')?.()
      return true
    }
  process.exitCode = undefined
  const code = await runCommand(args)
  for (const name of Object.keys(said)) process[name].write = real[name]
  answers.push({ code, ...said })
}
process.stdout.write(JSON.stringify(answers), () => process.exit(0))
