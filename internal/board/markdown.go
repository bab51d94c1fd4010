package board

import (
	"bytes"
	"regexp"
	"slices"
	"strings"

	"switchyard/internal/domain"
)

// heading returns the text of the first Markdown heading outside code blocks and comments whose level is at most lowest
// (1 or anyLevel), "" if there is none.
func heading(body []byte, lowest int) string {
	above, inComment := "", false
	var code codeBlocks
	for line := range strings.Lines(string(body)) {
		indented := strings.TrimRight(line, " \t\r\n")
		isCode := !inComment && code.has(indented)
		line := strings.TrimLeft(indented, " ")
		if len(indented)-len(line) > 3 || strings.HasPrefix(line, "\t") {
			above, isCode = "", true
		}
		if inComment = inComment || !isCode && strings.HasPrefix(line, "<!--"); inComment {
			inComment, above = !strings.Contains(line, "-->"), ""
			continue
		}
		switch {
		case isCode:
			above = ""
		case above != "" && line != "" && (strings.Trim(line, "=") == "" || lowest > 1 && strings.Trim(line, "-") == ""):
			return limit(above)
		default:
			if title, ok := atxHeading(line); ok {
				if title != "" && (lowest > 1 || !strings.HasPrefix(line, "##")) {
					return limit(title)
				}
				line = ""
			}
			above = line
		}
	}
	return ""
}

const anyLevel = 6

// codeBlocks says which of a text's lines are in fenced code blocks, which end with the list item that they are in.
type codeBlocks struct {
	fence string // the run of at least three backticks or tildes that began the block, "" outside one
	items []int  // where the texts of the list items around the last line begin
}

// has reports whether the next line is in a code block, or begins or ends one.
func (c *codeBlocks) has(line string) bool {
	text := strings.TrimSpace(line)
	if text == "" {
		return c.fence != ""
	}
	indent := indentOf(line)
	for n := len(c.items); n > 0 && indent < c.items[n-1]; n-- {
		c.items, c.fence = c.items[:n-1], ""
	}
	for c.fence == "" {
		marker := itemMarker.FindString(text)
		if marker == "" {
			break
		}
		indent += len(marker)
		text = strings.TrimLeft(text[len(marker):], " \t")
		c.items = append(c.items, indent)
	}
	mark, base := "", 0
	if n := len(c.items); n > 0 {
		base = c.items[n-1]
	}
	for _, character := range []string{"`", "~"} {
		rest := strings.TrimLeft(text, character)
		isInline := character == "`" && strings.Contains(rest, character) || indent-base > 3
		if run := text[:len(text)-len(rest)]; len(run) >= 3 && (c.fence != "" || !isInline) {
			mark = run
		}
	}
	was := c.fence
	switch {
	case was == "":
		c.fence = mark
	case strings.HasPrefix(mark, was) && mark == text:
		c.fence = ""
	}
	return was != "" || mark != ""
}

var itemMarker = regexp.MustCompile(`^(?:[-*+]|[0-9]{1,9}[.)])[ \t]+`)

func indentOf(line string) (columns int) {
	for _, space := range line {
		switch space {
		case ' ':
			columns++
		case '\t':
			columns += 4 - columns%4
		default:
			return columns
		}
	}
	return columns
}

func atxHeading(line string) (title string, ok bool) {
	title = strings.TrimLeft(line, "#")
	level := len(line) - len(title)
	if level < 1 || level > 6 || title != "" && title[0] != ' ' && title[0] != '\t' {
		return "", false
	}
	title = strings.TrimSpace(title)
	if open := strings.TrimRight(title, "#"); open == "" || open[len(open)-1] == ' ' || open[len(open)-1] == '\t' {
		title = strings.TrimSpace(open)
	}
	return title, true
}

type Task struct {
	domain.Task
	at int // where the byte in its box is, 0 if the box cannot be ticked
}

// countTasks counts the tasks that are not optional.
func countTasks(tasks []Task) (c domain.Criteria) {
	for i := range tasks {
		if tasks[i].Optional {
			continue
		}
		c.Total++
		if tasks[i].Done {
			c.Done++
		}
	}
	return c
}

func (c TaskChange) is(t Task) bool { return t.Path == c.Path && t.Line == c.Line }

func withTask(content []byte, tasks []Task, change TaskChange) ([]byte, error) {
	i := slices.IndexFunc(tasks, change.is)
	switch {
	case i < 0:
		return nil, domain.Errorf(domain.Invalid, "task: there is no box on line %d", change.Line)
	case tasks[i].at == 0:
		return nil, domain.Errorf(domain.Invalid, "task: the box on line %d can only be changed by hand", change.Line)
	case tasks[i].Done == change.Done:
		return content, nil
	}
	content = bytes.Clone(content)
	content[tasks[i].at] = ' '
	if change.Done {
		content[tasks[i].at] = 'x'
	}
	return content, nil
}

var (
	// listItem matches the marker of a list item, including those of enclosing quotes and items.
	listItem = regexp.MustCompile(`^(?:\s*(?:>|[-*+](?:\s|$)|[0-9]{1,9}[.)](?:\s|$)))+`)
	// taskBox matches the box that makes a list item a task.
	taskBox = regexp.MustCompile(`^\s{0,3}\[([ \txX])\]\s+\S`)
)

// tasks returns the items of the body's Markdown task lists outside code blocks.
func (d document) tasks() (tasks []Task) {
	inList := false
	var code codeBlocks
	at, number := d.bodyAt, d.bodyLine
	for raw := range strings.Lines(string(d.body)) {
		start := at
		at, number = at+len(raw), number+1
		line := strings.TrimRight(raw, " \t\r\n")
		text := strings.TrimLeft(line, " \t>")
		indented := strings.HasPrefix(line, "    ") || strings.HasPrefix(line, "\t")
		switch {
		case text == "":
			continue
		case code.fence == "" && indented && !inList: // a code block
			continue
		case code.has(strings.TrimLeft(line, ">")):
			continue
		}
		marker := listItem.FindString(line)
		if marker == "" {
			inList = inList && (line[0] == ' ' || line[0] == '\t')
			continue
		}
		inList = true
		if box := taskBox.FindStringSubmatchIndex(line[len(marker):]); box != nil {
			from := len(marker) + box[2]
			tasks = append(tasks, Task{domain.Task{
				Line: number, Text: limit(strings.TrimSpace(line[from+2:])),
				Done: strings.EqualFold(line[from:from+1], "x"),
			}, start + from})
		}
	}
	return tasks
}
