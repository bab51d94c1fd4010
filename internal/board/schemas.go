package board

import (
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// openSpecSchemas say which files have a change's boxes. It is nil for other layouts.
type openSpecSchemas struct {
	usual   string            // the schema of changes without one
	tracked map[string]string // a path or pattern, by schema
}

const schemasDir = "openspec/schemas"

func readSchemas(files *tree) *openSpecSchemas {
	s := &openSpecSchemas{usual: schemaOf(files, "openspec/config.yaml"), tracked: map[string]string{}}
	for _, file := range files.Below(schemasDir) {
		name, rest, _ := strings.Cut(strings.TrimPrefix(file, schemasDir+"/"), "/")
		if rest != "schema.yaml" {
			continue
		}
		schema, _ := parseMapping(files.Read(file)) // as in openspec, what cannot be read has no artifacts
		apply := frontMatter{*schema.get("apply")}
		tracks := apply.get("tracks")
		for _, node := range schema.get("artifacts").Content {
			artifact := frontMatter{*resolve(node)}
			generates, is := text(artifact.get("generates")), text(artifact.get("id")) == "tasks"
			if tracks.Kind == yaml.ScalarNode && tracks.ShortTag() != "!!null" {
				is = generates == text(tracks)
			}
			if is && s.tracked[name] == "" {
				s.tracked[name] = path.Clean(generates)
			}
		}
	}
	return s
}

func schemaOf(files Files, file string) string {
	config, _ := parseMapping(files.Read(file))
	return text(config.get("schema"))
}

// config differs if the same files mean something else.
func (s *openSpecSchemas) config() (all string) {
	if s == nil {
		return ""
	}
	all = s.usual
	for _, name := range slices.Sorted(maps.Keys(s.tracked)) {
		all += "\x00" + name + "\x00" + s.tracked[name]
	}
	return all
}

// isDeep reports whether files below those of a change's own folder matter.
func (s *openSpecSchemas) isDeep() bool {
	if s == nil {
		return false
	}
	for _, pattern := range s.tracked {
		if strings.Contains(pattern, "/") {
			return true
		}
	}
	return false
}

// lists returns the files for the boxes of the story in a folder: at least one, which may not exist.
func (s *openSpecSchemas) lists(dir string, files Files) (lists []string) {
	usual := path.Join(dir, "tasks.md")
	if s == nil || len(s.tracked) == 0 {
		return []string{usual}
	}
	schema := schemaOf(files, path.Join(dir, ".openspec.yaml"))
	if schema == "" {
		schema = s.usual
	}
	switch pattern := s.tracked[schema]; {
	case pattern == "":
	case !strings.ContainsAny(pattern, "*?[{"):
		if file := path.Join(dir, pattern); files.Has(file) {
			lists = []string{file}
		}
	default:
		wanted := globPattern(pattern)
		for _, file := range files.Below(dir) {
			if wanted.MatchString(strings.TrimPrefix(file, dir+"/")) {
				lists = append(lists, file)
			}
		}
		slices.Sort(lists)
	}
	if len(lists) == 0 {
		lists = []string{usual}
	}
	return lists
}

// globPattern returns the expression for a path pattern with *, **, ?, [a-z] and {a,b}; if it is invalid, one that
// matches nothing.
func globPattern(glob string) *regexp.Regexp {
	var b strings.Builder
	b.WriteString("^")
	for i, depth := 0, 0; i < len(glob); i++ {
		rest := glob[i:]
		switch {
		case strings.HasPrefix(rest, "**/"):
			b.WriteString("(?:[^/]+/)*")
			i += 2
		case strings.HasPrefix(rest, "**"):
			b.WriteString(".*")
			i++
		case rest[0] == '*':
			b.WriteString("[^/]*")
		case rest[0] == '?':
			b.WriteString("[^/]")
		case rest[0] == '{':
			b.WriteString("(?:")
			depth++
		case rest[0] == '}' && depth > 0:
			b.WriteString(")")
			depth--
		case rest[0] == ',' && depth > 0:
			b.WriteString("|")
		case rest[0] == '[' && strings.Contains(rest, "]"):
			class := rest[1:strings.IndexByte(rest, ']')]
			if not, is := strings.CutPrefix(class, "!"); is {
				b.WriteString("[^/" + regexp.QuoteMeta(not) + "]")
			} else {
				b.WriteString("[" + regexp.QuoteMeta(class) + "]")
			}
			i += len(class) + 1
		default:
			b.WriteString(regexp.QuoteMeta(rest[:1]))
		}
	}
	if expression, err := regexp.Compile(b.String() + "$"); err == nil {
		return expression
	}
	return regexp.MustCompile("$^x")
}
