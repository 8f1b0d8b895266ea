// What the package exports, read from its declaration files: names, members, types as they are written, doc comments.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import ts from 'typescript'
import { root } from '../setup.mjs'

const dist = `${join(root, 'dist').replaceAll('\\', '/')}/`
const options = {
  module: ts.ModuleKind.NodeNext,
  moduleResolution: ts.ModuleResolutionKind.NodeNext,
  lib: ['lib.es2023.d.ts'],
  types: [],
  strict: true,
}
const printer = ts.createPrinter({ removeComments: true })

/** Every entry point of the package that has types: how it is imported, and its declaration file. */
const entries = Object.entries(JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).exports)
  .filter(([, target]) => target.types)
  .map(([path, target]) => ({
    from: path.replace(/^\./, 'holdfast'),
    file: join(root, target.types).replaceAll('\\', '/'),
  }))

const program = ts.createProgram(
  entries.map(({ file }) => file),
  options,
  ownFilesOnly(),
)
const checker = program.getTypeChecker()

/** All exports, entry point by entry point, in the order of their declaration. */
export function readExports() {
  return entries.flatMap(({ from, file }) =>
    checker
      .getExportsOfModule(checker.getSymbolAtLocation(program.getSourceFile(file)))
      .map((symbol) => ({ ...describe(resolved(symbol)), name: symbol.name, from })),
  )
}

/** A declaration: its name, file, form, doc comment, and whatever its form has. */
export function describe(symbol) {
  const [node] = symbol.declarations
  const common = { symbol, node, name: symbol.name, file: fileOf(node), doc: docOf(symbol) }
  if (ts.isFunctionDeclaration(node)) return { ...common, form: 'function', ...callOf(node) }
  if (ts.isInterfaceDeclaration(node)) return { ...common, form: 'interface', ...membersOf(symbol) }
  if (ts.isClassDeclaration(node)) return { ...common, form: 'class', ...membersOf(symbol), makes: constructorOf(node) }
  if (ts.isVariableDeclaration(node)) return { ...common, form: 'value' }
  return { ...common, form: 'type', ...(isObject(node.type) ? membersOf(symbol) : { methods: [], fields: [] }) }
}

/** The declarations of this package that a node names, each once, in order. */
export function namedIn(...nodes) {
  const found = new Set()
  const visit = (node) => {
    const name = ts.isTypeReferenceNode(node) ? node.typeName : undefined
    const symbol = name && checker.getSymbolAtLocation(name)
    if (symbol) found.add(resolved(symbol))
    ts.forEachChild(node, visit)
  }
  for (const node of nodes.filter(Boolean)) visit(node)
  return [...found].filter((symbol) => isOwn(symbol) && !(symbol.flags & ts.SymbolFlags.TypeParameter))
}

/** The members of an alias that is a union of words, however it is written; undefined for any other declaration. */
export function literalsOf({ symbol, node, form }) {
  if (form !== 'type' || node.typeParameters?.length) return undefined
  const type = checker.getDeclaredTypeOfSymbol(symbol)
  const members = type.isUnion() ? type.types : [type]
  if (!members.every((one) => one.isStringLiteral())) return undefined
  return members.map(({ value }) => `'${value}'`)
}

/** The declarations of this package that an interface extends. */
export function basesOf(node) {
  const types = (node.heritageClauses ?? []).flatMap((clause) => [...clause.types])
  return types
    .map(({ expression }) => checker.getSymbolAtLocation(expression))
    .filter(Boolean)
    .map(resolved)
    .filter(isOwn)
}

/** A node as it is written, without comments. */
export function textOf(node) {
  return printer.printNode(ts.EmitHint.Unspecified, node, node.getSourceFile())
}

/** A node on one line. */
export function lineOf(node) {
  return textOf(node).replace(/\s+/g, ' ').replace(/; }/g, ' }')
}

// Other packages stay unresolved: types are shown as they are written, and reading those of Kysely and Zod takes seconds.
function ownFilesOnly() {
  const host = ts.createCompilerHost(options)
  host.resolveModuleNameLiterals = (literals, from) =>
    literals.map(({ text }) =>
      text.startsWith('.')
        ? ts.resolveModuleName(text, from, options, host, undefined, undefined, ts.ModuleKind.ESNext)
        : { resolvedModule: undefined },
    )
  return host
}

function resolved(symbol) {
  return symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol
}

function isOwn(symbol) {
  return symbol.declarations?.[0]?.getSourceFile().fileName.startsWith(dist) ?? false
}

function fileOf(node) {
  return node
    .getSourceFile()
    .fileName.slice(dist.length)
    .replace(/\.d\.ts$/, '')
}

function docOf(symbol) {
  return ts.displayPartsToString(symbol.getDocumentationComment(checker)).trim()
}

function callOf(node) {
  return { parameters: [...node.parameters], returns: node.type, typeParameters: [...(node.typeParameters ?? [])] }
}

function constructorOf(node) {
  const made = node.members.find(ts.isConstructorDeclaration)
  return made && callOf(made)
}

// Also those that are inherited, or that only one member of a union has.
function membersOf(symbol) {
  const members = propertiesOf(checker.getDeclaredTypeOfSymbol(symbol)).map(memberOf)
  return { methods: members.filter(({ parameters }) => parameters), fields: members.filter((one) => !one.parameters) }
}

/** The members of a type that is written in place. */
export function membersIn(node) {
  return propertiesOf(checker.getTypeFromTypeNode(node)).map(memberOf)
}

function propertiesOf(type) {
  const parts = type.isUnionOrIntersection() ? type.types.flatMap(propertiesOf) : checker.getPropertiesOfType(type)
  const byName = new Map()
  for (const one of parts.filter(isOwn)) {
    const other = byName.get(one.name)
    if (!other || isForbidden(other)) byName.set(one.name, one)
  }
  return [...byName.values()]
}

/** Whether a member of a union says only that another one's member may not be there. */
function isForbidden(symbol) {
  return symbol.declarations[0].type?.kind === ts.SyntaxKind.UndefinedKeyword
}

function memberOf(symbol) {
  const [node] = symbol.declarations
  const common = {
    symbol,
    node,
    name: symbol.name,
    file: fileOf(node),
    doc: docOf(symbol),
    isOptional: Boolean(symbol.flags & ts.SymbolFlags.Optional),
    type: node.type,
  }
  return ts.isMethodSignature(node) || ts.isMethodDeclaration(node) ? { ...common, ...callOf(node) } : common
}

function isObject(node) {
  if (ts.isTypeLiteralNode(node)) return true
  if (ts.isParenthesizedTypeNode(node)) return isObject(node.type)
  return (
    ts.isIntersectionTypeNode(node) &&
    node.types.every((one) => ts.isTypeReferenceNode(one) || isObject(one) || ts.isParenthesizedTypeNode(one))
  )
}
