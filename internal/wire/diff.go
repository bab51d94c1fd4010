package wire

import "strings"

// DiffTexts returns the text of each of a diff's files, "" for one that is left out. Only the first line of a file's
// text begins as it does; a file whose type has changed has two such lines, which are the same.
func DiffTexts(files []ChangedFile, diff string) []string {
	texts := make([]string, len(files))
	at, last := -1, ""
	for diff != "" {
		end := strings.Index(diff, "\ndiff --git ") + 1
		if end == 0 {
			end = len(diff)
		}
		if header, _, _ := strings.Cut(diff, "\n"); header != last {
			for at, last = at+1, header; at < len(files) && files[at].Cut; {
				at++
			}
		}
		if at < len(files) {
			texts[at] += diff[:end]
		}
		diff = diff[end:]
	}
	return texts
}
