package board

import (
	"strings"

	"switchyard/internal/domain"
)

func (c Change) apply(file *storyFile) ([]byte, error) {
	if c.Blocked == nil && !c.ClearMergeFailure {
		return file.content, nil
	}
	err := errFileTooLong
	var front frontMatter
	if !file.tooLarge() {
		front, err = parseFrontMatter(splitDocument(file.content))
	}
	content := file.content
	if err == nil {
		if settings := c.settings(front); len(settings) > 0 {
			content, err = edit(file.content, settings)
		}
	}
	if err == nil && len(content) > maxFile && len(content) > len(file.content) {
		err = errFileTooLong
	}
	if err != nil {
		return nil, domain.Errorf(domain.Conflict, "the story cannot be changed here: %v", err)
	}
	return content, nil
}

// settings returns the keys that the change must set, without those that already have the right value.
func (c Change) settings(front frontMatter) (settings []setting) {
	now := readFacts(front, nil)
	set := func(key, value string) {
		if value != "" || front.get(key).Kind != 0 {
			settings = append(settings, setting{key, value})
		}
	}
	switch own := text(front.get("blocked")); {
	case c.Blocked == nil || limit(strings.TrimSpace(*c.Blocked)) == now.blocked:
	case *c.Blocked == "":
		set("blocked", "")
		set("blocked_reason", "")
	case now.blocked != "" && now.blocked == own && reason(front.get("blocked"), "\x00", "\x00") != "\x00":
		// the key's value is the reason
		set("blocked", yamlString(strings.TrimSpace(*c.Blocked)))
	default:
		if now.blocked == "" {
			set("blocked", "true")
		}
		set("blocked_reason", yamlString(strings.TrimSpace(*c.Blocked)))
	}
	if c.ClearMergeFailure && now.mergeFailure != "" {
		set("merge_failure", "")
	}
	return settings
}
