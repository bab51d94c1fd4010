package board

import (
	"bytes"
	"errors"

	"go.yaml.in/yaml/v3"
)

const (
	// maxFrontMatter is the longest front matter that is parsed, in bytes. The parser takes up to 40 ms and 20 MiB for
	// that.
	maxFrontMatter = 64 << 10
	// maxNesting is how deep front matter may be nested.
	maxNesting = 100
	// maxExpanded is the largest size of front matter with its aliases expanded: the bytes of its scalars
	// plus one for each node. Without aliases it stays below twice maxFrontMatter.
	maxExpanded = 4 * maxFrontMatter
)

// document is a file's content, split at the lines around its front matter. The pieces share the content's memory.
type document struct {
	before []byte // a byte order mark and the opening "---" line; without front matter only the byte order mark
	head   []byte // the YAML
	body   []byte // what follows the closing "---" line
	opened bool   // there is an opening line
	closed bool   // and a closing one
}

// splitDocument splits content at the "---" lines around its front matter. Unless it has both lines, all of it is body.
func splitDocument(content []byte) document {
	text := bytes.TrimPrefix(content, []byte("\ufeff"))
	mark := content[:len(content)-len(text)]
	first, rest, _ := bytes.Cut(text, []byte("\n"))
	if !isMark(first) {
		return document{before: mark, body: text}
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
	return document{before: mark, body: text, opened: true}
}

func isMark(line []byte) bool { return string(bytes.TrimRight(line, " \t\r")) == "---" }

// Reasons why front matter cannot be read, besides the parser's own.
var (
	errNotClosed   = errors.New("the front matter is not closed")
	errTooLong     = errors.New("the front matter is longer than 64 KiB")
	errFileTooLong = errors.New("the file is larger than 1 MiB")
	errNoMapping   = errors.New("the front matter is not a mapping")
	errNoScalarKey = errors.New("the front matter has a key that is not a scalar")
	errNesting     = errors.New("the front matter is nested more than 100 levels deep")
	errExpansion   = errors.New("the aliases of the front matter expand to too much")
)

// frontMatter is a mapping in which all keys, at every level, are scalars and unique.
type frontMatter struct {
	mapping *yaml.Node // nil when there is none
}

// parseFrontMatter parses d's front matter in time and memory linear in its length: into nodes, never into values,
// since the time to decode a mapping is quadratic in its keys.
func parseFrontMatter(d document) (frontMatter, error) {
	switch {
	case d.opened && !d.closed:
		return frontMatter{}, errNotClosed
	case len(d.head) > maxFrontMatter:
		return frontMatter{}, errTooLong
	}
	var root yaml.Node
	if err := yaml.Unmarshal(d.head, &root); err != nil {
		return frontMatter{}, err
	}
	if root.Kind == 0 { // nothing but comments
		return frontMatter{}, nil
	}
	mapping := root.Content[0]
	if mapping.Kind == yaml.ScalarNode && mapping.ShortTag() == "!!null" {
		return frontMatter{}, nil
	}
	if mapping.Kind != yaml.MappingNode {
		return frontMatter{}, errNoMapping
	}
	budget := maxExpanded
	if err := checkNode(mapping, maxNesting, &budget); err != nil {
		return frontMatter{}, err
	}
	return frontMatter{mapping}, nil
}

// checkNode returns an error unless node is safe to walk: not too deep, and with its aliases expanded not too large.
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
			return errors.New("the front matter has the key " + limit(key.Value) + " twice")
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

// get returns the value of a key, a zero node if there is none.
func (f frontMatter) get(key string) *yaml.Node {
	if f.mapping != nil {
		for i := 0; i < len(f.mapping.Content); i += 2 {
			if resolve(f.mapping.Content[i]).Value == key {
				return resolve(f.mapping.Content[i+1])
			}
		}
	}
	return &yaml.Node{}
}
