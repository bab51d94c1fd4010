package bot

import (
	"net/url"
	"strings"
)

// links is the console's address, to which it makes links; it makes none if it is "".
type links string

// maxLinked is the longest id that is linked, in bytes.
const maxLinked = 200

// story returns a code span with a story's id that links to its page.
func (l links) story(project, id string) Span {
	span := Code(short(id, maxName))
	if l != "" && id != "" && len(id) <= maxLinked {
		span.link = strings.TrimRight(string(l), "/") + "/projects/" + url.PathEscape(project) + "/stories/" + url.PathEscape(id)
	}
	return span
}
