package board

import (
	"encoding/json"
	"math"

	"go.yaml.in/yaml/v3"
)

// appendJSON appends the front matter as a JSON object, its keys in the same order. Values that JSON does not have,
// such as infinity, become strings.
func (f frontMatter) appendJSON(b []byte) []byte {
	if f.mapping == nil {
		return append(b, "{}"...)
	}
	return appendNode(b, f.mapping)
}

// appendNode appends a node that checkNode has accepted.
func appendNode(b []byte, node *yaml.Node) []byte {
	node = resolve(node)
	switch node.Kind {
	case yaml.MappingNode:
		b = append(b, '{')
		for i := 0; i < len(node.Content); i += 2 {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendValue(b, resolve(node.Content[i]).Value)
			b = appendNode(append(b, ':'), node.Content[i+1])
		}
		return append(b, '}')
	case yaml.SequenceNode:
		b = append(b, '[')
		for i, child := range node.Content {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendNode(b, child)
		}
		return append(b, ']')
	}
	return appendValue(b, scalar(node))
}

// scalar returns the JSON value of a scalar: null, a boolean, a number or a string.
func scalar(node *yaml.Node) any {
	var value any
	switch node.ShortTag() {
	case "!!null", "!!bool", "!!int", "!!float":
		if node.Decode(&value) != nil {
			return node.Value
		}
	default:
		return node.Value
	}
	if number, ok := value.(float64); ok && (math.IsInf(number, 0) || math.IsNaN(number)) {
		return node.Value
	}
	return value
}

func appendValue(b []byte, value any) []byte {
	text, err := json.Marshal(value)
	if err != nil { // only a programming error can get here
		panic(err)
	}
	return append(b, text...)
}
