// How declarations look in Markdown.
import { lineOf, membersIn, textOf } from './types.mjs'

const maxLine = 100
const maxSignature = 600

/** A fence that is highlighted as TypeScript. Not `ts`, since those are examples, which a test compiles. */
export function fenced(text) {
  return `\`\`\`typescript\n${text}\n\`\`\``
}

export function table(heads, rows) {
  const line = (cells) => `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`
  return [line(heads), `|${'---|'.repeat(heads.length)}`, ...rows.map(line)].join('\n')
}

export function code(text) {
  return `\`${text}\``
}

/** The first sentence of a comment. */
export function firstSentence(doc) {
  return flat(doc).match(/^.*?[.!?](?= [A-Z`]|$)/)?.[0] ?? flat(doc)
}

/** A comment on one line. */
export function flat(doc) {
  return doc.replace(/\s+/g, ' ')
}

/** A comment with its paragraphs, one line each. */
export function paragraphs(doc) {
  return doc
    .split(/\n{2,}/)
    .map(flat)
    .join('\n\n')
}

/** A call as it is written, on several lines if it is long. Types that would fill the screen are left out. */
export function signature(name, call) {
  const whole = written(name, call, lineOf)
  const isHuge = whole.length > maxSignature
  const text = isHuge ? written(name, { ...call, typeParameters: [] }, (node) => shortened(node)) : whole
  if (text.length <= maxLine) return text
  const { typeParameters, parameters, returns } = call
  const typeOf = isHuge ? (node) => shortened(node) : lineOf
  const lines = parameters.map((one) => `  ${parameter(one, typeOf)},\n`).join('')
  return `${name}${isHuge ? '' : generics(typeParameters)}(\n${lines})${returns ? `: ${typeOf(returns)}` : ''}`
}

/** The members of parameters whose types a signature leaves out. */
export function leftOut(name, call) {
  if (written(name, call, lineOf).length <= maxSignature) return []
  return call.parameters.filter(({ type }) => shortened(type) !== lineOf(type)).flatMap(({ type }) => membersIn(type))
}

/** A type, or only its outline if it is long. */
export function shortened(node, most = maxLine) {
  const text = lineOf(node)
  if (text.length <= most) return text
  if (node.typeArguments) return `${node.typeName.getText()}<…>`
  return text.startsWith('readonly [') ? 'readonly [ … ]' : '{ … }'
}

/** `<J extends AnyJob>`, or nothing. */
export function generics(typeParameters) {
  if (!typeParameters?.length) return ''
  const line = `<${typeParameters.map(lineOf).join(', ')}>`
  return line.length <= maxLine ? line : `<\n${typeParameters.map((one) => `  ${lineOf(one)},\n`).join('')}>`
}

/** A union, on as many lines as it takes. */
export function union(name, members) {
  const line = `type ${name} = ${members.join(' | ')}`
  if (line.length <= maxLine) return line
  const lines = ['']
  for (const one of members) {
    if (`${lines.at(-1)} | ${one}`.length > maxLine) lines.push('')
    lines.push(`${lines.pop()} | ${one}`)
  }
  return `type ${name} =\n${lines.map((text) => ` ${text}`).join('\n')}`
}

/** A type alias as it is written, with the indentation and the line ends of this project. */
export function alias(node) {
  return textOf(node)
    .replace(/^export (declare )?/, '')
    .replace(/^( {4})+/gm, (indent) => ' '.repeat(indent.length / 2))
    .replace(/;$/gm, '')
}

/** The default that a comment states in a sentence of its own, and the comment without it. */
export function defaultIn(doc) {
  const text = flat(doc)
  const found = /(?:^|(?<=[.!?]) ?|; )default(?:s to|:)? ((?!and )[^.;]+(?:\.\d[^.;]*)*)(?:\.|;|$) ?/i.exec(text)
  if (!found) return { text, standard: '' }
  const rest = `${text.slice(0, found.index)}${found[0].startsWith(';') ? '. ' : ' '}${upper(text.slice(found.index + found[0].length))}`
  return { text: rest.trim().replace(/^\. ?/, ''), standard: found[1] }
}

function upper(text) {
  return text.charAt(0).toUpperCase() + text.slice(1)
}

function written(name, { typeParameters, parameters, returns }, typeOf) {
  const inside = parameters.map((one) => parameter(one, typeOf)).join(', ')
  return `${name}${generics(typeParameters)}(${inside})${returns ? `: ${typeOf(returns)}` : ''}`
}

function parameter(node, typeOf) {
  const rest = node.dotDotDotToken ? '...' : ''
  return `${rest}${node.name.getText()}${node.questionToken ? '?' : ''}: ${typeOf(node.type)}`
}
