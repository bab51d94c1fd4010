package board

import "strings"

// firstHeading returns the text of the first Markdown heading outside code blocks, "" if there is none.
func firstHeading(body []byte) string {
	fence, above := "", ""
	for line := range strings.Lines(string(body)) {
		indented := strings.TrimRight(line, " \t\r\n")
		line := strings.TrimLeft(indented, " ")
		if len(indented)-len(line) > 3 || strings.HasPrefix(line, "\t") {
			above = ""
			continue
		}
		mark := codeFence(line)
		switch {
		case fence != "":
			if strings.HasPrefix(mark, fence) && mark == line {
				fence = ""
			}
		case mark != "":
			fence, above = mark, ""
		case above != "" && line != "" && (strings.Trim(line, "=") == "" || strings.Trim(line, "-") == ""):
			return limit(above)
		default:
			if title, ok := atxHeading(line); ok {
				if title != "" {
					return limit(title)
				}
				line = ""
			}
			above = line
		}
	}
	return ""
}

// codeFence returns the run of at least three backticks or tildes that line begins with.
func codeFence(line string) string {
	for _, mark := range []string{"`", "~"} {
		if run := line[:len(line)-len(strings.TrimLeft(line, mark))]; len(run) >= 3 {
			return run
		}
	}
	return ""
}

// atxHeading returns the text of a "## heading ##" line.
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
