package board

import (
	"bytes"
	"encoding/json"
	"errors"

	"go.yaml.in/yaml/v3"
)

const (
	// maxFrontMatter is the longest front matter that is parsed, in bytes, and maxMarks the most lines, brackets and
	// other marks that a value may follow: the parser takes 600 bytes for each.
	maxFrontMatter, maxMarks = 64 << 10, 10_000
	// maxNesting is how deeply front matter may be nested.
	maxNesting = 100
	// maxExpanded is the largest size of front matter with its aliases expanded: the bytes of its scalars plus one for
	// each node. Without aliases it stays below twice maxFrontMatter.
	maxExpanded = 4 * maxFrontMatter
)

// document is a file's content, split at the lines around its front matter. The pieces share the content's memory.
type document struct {
	before []byte // the opening "---" line
	head   []byte // the YAML
	body   []byte // what follows the closing "---" line
	opened bool   // there is an opening line
	closed bool   // and a closing one

	bodyAt, bodyLine int // where the body begins: in bytes, and in lines
}

// splitDocument splits content as split does, and says where the body is.
func splitDocument(content []byte) document {
	d := split(content)
	d.bodyAt = len(content) - len(d.body)
	d.bodyLine = bytes.Count(content[:d.bodyAt], []byte("\n"))
	return d
}

// split splits content at the "---" lines around its front matter. Unless it has both lines, all of it is body.
func split(content []byte) document {
	first, rest, _ := bytes.Cut(content, []byte("\n"))
	if !isMark(first) {
		return document{body: content}
	}
	for at := 0; at < len(rest); {
		line, _, found := bytes.Cut(rest[at:], []byte("\n"))
		next := at + len(line)
		if found {
			next++
		}
		if isMark(line) {
			return document{
				before: content[:len(content)-len(rest)], head: rest[:at], body: rest[next:], opened: true,
				closed: true,
			}
		}
		at = next
	}
	return document{body: content, opened: true}
}

func isMark(line []byte) bool { return string(bytes.TrimRight(line, " \t\r")) == "---" }

// Reasons why front matter cannot be read, besides the parser's own.
var (
	errNotClosed   = errors.New("the front matter is not closed")
	errTooMany     = errors.New("the front matter has more than 10,000 values")
	errTooLong     = errors.New("the front matter is longer than 64 KiB")
	errFileTooLong = errors.New("the file is larger than 1 MiB")
	errNoMapping   = errors.New("the front matter is not a mapping")
	errNoScalarKey = errors.New("the front matter has a key that is not a scalar")
	errNesting     = errors.New("the front matter is nested more than 100 levels deep")
	errExpansion   = errors.New("the aliases of the front matter expand to too much")
)

// frontMatter is a mapping in which all keys, at every level, are scalars and unique. It is empty if there is none.
type frontMatter struct{ yaml.Node }

var noFrontMatter = frontMatter{yaml.Node{Kind: yaml.MappingNode}}

// parseFrontMatter parses d's front matter in time and memory linear in its length: into nodes, never into values,
// since decoding a mapping takes time quadratic in its keys.
func parseFrontMatter(d document) (frontMatter, error) {
	switch {
	case d.opened && !d.closed:
		return noFrontMatter, errNotClosed
	case len(d.head) > maxFrontMatter:
		return noFrontMatter, errTooLong
	}
	return parseMapping(d.head)
}

// parseMapping does the same for a text that is a mapping.
func parseMapping(text []byte) (frontMatter, error) {
	switch {
	case len(text) == 0: // the usual case, for which the parser takes ten times as long as reading the file
		return noFrontMatter, nil
	case marks(text) > maxMarks:
		return noFrontMatter, errTooMany
	}
	var root yaml.Node
	if err := yaml.Unmarshal(text, &root); err != nil || root.Kind == 0 { // nothing but comments
		return noFrontMatter, err
	}
	switch mapping := root.Content[0]; {
	case mapping.Kind == yaml.ScalarNode && mapping.ShortTag() == "!!null":
		return noFrontMatter, nil
	case mapping.Kind != yaml.MappingNode:
		return noFrontMatter, errNoMapping
	default:
		budget := maxExpanded + 2*len(text)
		if err := checkNode(mapping, maxNesting, &budget); err != nil {
			return noFrontMatter, err
		}
		return frontMatter{*mapping}, nil
	}
}

// marks counts the marks in a text that may begin a value: its lines, "- ", ": ", "? ", and those of lists and mappings
// on one line.
func marks(text []byte) (count int) {
	for i, c := range text {
		switch c {
		case '\n', ',', '[', '{':
			count++
		case '-', ':', '?':
			if i+1 == len(text) || bytes.IndexByte([]byte(" \t\r\n"), text[i+1]) >= 0 {
				count++
			}
		}
	}
	return count
}

// checkNode returns an error unless node is safe to walk: not too deep and, with its aliases expanded, not too large.
func checkNode(node *yaml.Node, depth int, budget *int) error {
	node = resolve(node)
	*budget -= 1 + len(node.Value)
	switch {
	case depth < 0:
		return errNesting
	case *budget < 0:
		return errExpansion
	case node.Kind == yaml.MappingNode:
		if err := checkKeys(node); err != nil {
			return err
		}
	}
	for _, child := range node.Content {
		if err := checkNode(child, depth-1, budget); err != nil {
			return err
		}
	}
	return nil
}

func checkKeys(mapping *yaml.Node) error {
	seen := make(map[string]struct{}, len(mapping.Content)/2)
	for i := 0; i < len(mapping.Content); i += 2 {
		key := resolve(mapping.Content[i])
		if key.Kind != yaml.ScalarNode {
			return errNoScalarKey
		}
		if _, ok := seen[key.Value]; ok {
			return errors.New("the key " + limit(key.Value) + " is given twice")
		}
		seen[key.Value] = struct{}{}
	}
	return nil
}

// resolve returns the node that an alias refers to, or any other node itself.
func resolve(node *yaml.Node) *yaml.Node {
	if node.Kind == yaml.AliasNode {
		return node.Alias
	}
	return node
}

func (f frontMatter) get(key string) *yaml.Node {
	for i := 0; i < len(f.Content); i += 2 {
		if resolve(f.Content[i]).Value == key {
			return resolve(f.Content[i+1])
		}
	}
	return &yaml.Node{}
}

// appendJSON appends as JSON a node that checkNode has accepted, keeping the order of its keys. Values that JSON lacks,
// such as infinity, become strings.
func appendJSON(b []byte, node *yaml.Node) []byte {
	node = resolve(node)
	switch node.Kind {
	case yaml.MappingNode:
		b = append(b, '{')
		for i := 0; i < len(node.Content); i += 2 {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendText(b, resolve(node.Content[i]).Value)
			b = appendJSON(append(b, ':'), node.Content[i+1])
		}
		return append(b, '}')
	case yaml.SequenceNode:
		b = append(b, '[')
		for i, child := range node.Content {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendJSON(b, child)
		}
		return append(b, ']')
	}
	var value any
	switch node.ShortTag() {
	case "!!null", "!!bool", "!!int", "!!float":
		if node.Decode(&value) == nil {
			if encoded, err := json.Marshal(value); err == nil {
				return append(b, encoded...)
			}
		}
	}
	return appendText(b, node.Value)
}

func appendText(b []byte, text string) []byte {
	encoded, _ := json.Marshal(text) // strings always encode
	return append(b, encoded...)
}
