package board

import (
	"cmp"
	"errors"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// bmadFile is the content of a status file.
type bmadFile struct {
	place   string // where the stories' files are, "" for beside it
	stories []bmadStory
}

type bmadStory struct {
	id, status string
	line       int // the line of its key
}

// readBMADStatus reads a file in the tool's own format line by line, using no more memory than its text, and any other
// as YAML no larger than front matter. It is an error if there are no statuses.
func readBMADStatus(content []byte) (file bmadFile, err error) {
	if file, plain := readBMADLines(content); plain {
		return file, nil
	}
	if len(content) > maxFrontMatter {
		return file, errTooLong
	}
	document, err := parseMapping(content)
	if err != nil {
		return file, err
	}
	statuses := document.get(bmadKey)
	if statuses.Kind != yaml.MappingNode {
		return file, errors.New(bmadKey + " is not a mapping")
	}
	file.place = text(document.get("story_location"))
	for pair := range slices.Chunk(statuses.Content, 2) {
		file.stories = append(file.stories, bmadStory{resolve(pair[0]).Value, text(resolve(pair[1])), pair[0].Line - 1})
	}
	return file, nil
}

// plainLine matches a line of a mapping that means the same out of context: blanks, a key, the separator and the value,
// either of them perhaps in quotes.
var plainLine = regexp.MustCompile(`^( *)("[\w. /{}-]+"|'[\w. /{}-]+'|\w[\w.-]*):` +
	`(?: +("[^"\\]*"|'[^']*'|\w[\w. :/+-]*))?(?: +#.*)?\r?$`)

// readBMADLines reads a file with one key per line. Outside the key of the statuses, indented lines may be anything.
func readBMADLines(content []byte) (file bmadFile, plain bool) {
	section, indent, seen, number := "", "", map[string]bool{}, -1
	for text := range strings.Lines(string(content)) {
		number++
		line := strings.TrimSuffix(text, "\n")
		inside := strings.HasPrefix(line, " ")
		if trimmed := strings.TrimSpace(line); trimmed == "" || trimmed[0] == '#' ||
			inside && section != bmadKey || line == "---" && section == "" {
			continue
		}
		found := plainLine.FindStringSubmatch(line)
		if found == nil || strings.Contains(found[3]+" ", ": ") || slices.Contains(nullWords, found[3]) {
			return file, false
		}
		key, value := strings.Trim(found[2], `"'`), strings.TrimSpace(strings.Trim(found[3], `"'`))
		if !inside {
			if seen["\x00"+key] || key == bmadKey && found[3] != "" {
				return file, false
			}
			section, indent, seen["\x00"+key] = key, "", true
			switch key {
			case "story_location":
				file.place = value
			case bmadKey:
				file.stories = []bmadStory{}
			}
			continue
		}
		indent = cmp.Or(indent, found[1])
		if found[1] != indent || seen[key] || len(seen) == maxTasks {
			return file, false
		}
		seen[key] = true
		file.stories = append(file.stories, bmadStory{key, value, number})
	}
	return file, len(file.stories) > 0
}

var nullWords = []string{"null", "Null", "NULL", "~"}
