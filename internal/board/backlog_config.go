package board

import (
	"bytes"
	"cmp"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"switchyard/internal/domain"
)

// backlogConfigs are where the configuration may be: the first that exists counts.
var backlogConfigs = []string{"backlog.config.yml", "backlog/config.yml", ".backlog/config.yml"}

func openBacklog(files *tree) (*rules, error) {
	at := max(0, slices.IndexFunc(backlogConfigs, files.Has))
	config, f := files.Read(backlogConfigs[at]), backlogRules{root: path.Dir(backlogConfigs[at])}
	if f.root == "." {
		f.root = "backlog"
		dir := strings.ReplaceAll(text(backlogSetting(config, "backlog_directory")), `\`, "/")
		if dir = path.Clean(dir); dir != "." && filepath.IsLocal(filepath.FromSlash(dir)) {
			f.root = dir
		} else if !files.Has("backlog/.") && files.Has(".backlog/.") {
			f.root = ".backlog"
		}
	}
	f.statuses = []string{"To Do", "In Progress", "Done"}
	var faults []*faultyFile
	list := backlogSetting(config, "statuses")
	switch {
	case list.Kind == yaml.SequenceNode && len(list.Content) > 0:
		f.statuses = nil
		for _, node := range list.Content {
			status := text(resolve(node))
			isKnown := slices.ContainsFunc(f.statuses, func(known string) bool { return fold(known) == fold(status) })
			if status != "" && !isKnown && len(f.statuses) < 100 {
				f.statuses = append(f.statuses, status)
			}
		}
	case list.Kind != 0 && list.Kind != yaml.SequenceNode && list.ShortTag() != "!!null":
		faults = append(faults, &faultyFile{backlogConfigs[at], "its statuses are no list"})
	}
	f.status = text(backlogSetting(config, "default_status"))
	if f.status == "" && len(f.statuses) > 0 {
		f.status = f.statuses[0]
	}
	f.prefix = cmp.Or(text(backlogSetting(config, "task_prefix")), "task")
	const byTool = "drafts are promoted, and tasks completed and archived, by backlog itself"
	r := &rules{
		stages: slices.Concat([]stageRule{{"draft/", "Draft", byTool}}, plainStages(f.statuses...),
			[]stageRule{{completedKey, "Completed", byTool}, {"archived/", "Archived", byTool}}),
		config: f.root + "\x00" + f.status + "\x00" + strings.Join(f.statuses, "\x00"),
		unit:   f.unit, stories: f.stories, move: f.move, same: f.same, faults: faults,
		unique:  func(unit string) bool { return strings.HasPrefix(unit, "1 ") },
		lock:    func(id string) string { return path.Join(f.root, ".locks", "task-"+strings.ToLower(path.Base(id))) },
		descend: func(dir string) bool { return dir == path.Join(f.root, "archive") || f.unit(dir+"/x.md") != "" },
	}
	r.unseen = r.firstOfWork(domain.LayoutBacklog)
	for _, folder := range backlogFolders {
		r.paths = append(r.paths, path.Join(f.root, folder.name))
	}
	return r, nil
}

// backlogSetting returns the value of a key in a configuration whose other lines may be anything, since Backlog.md
// writes some that are not YAML. If the key occurs more than once, the last one counts.
func backlogSetting(config []byte, key string) *yaml.Node {
	lines := bytes.SplitAfter(bytes.TrimPrefix(config, []byte("\ufeff")), []byte("\n"))
	is := func(line []byte) bool {
		after, found := bytes.CutPrefix(line, []byte(key))
		return found && bytes.HasPrefix(bytes.TrimLeft(after, " \t"), []byte(":"))
	}
	for at, line := range slices.Backward(lines) {
		if !is(line) {
			continue
		}
		end := at + 1
		for end < len(lines) && !settingLine.Match(lines[end]) {
			end++
		}
		for _, text := range [][]byte{bytes.Join(lines[at:end], nil), line} {
			if setting, err := parseMapping(text); err == nil {
				return setting.get(key)
			}
		}
		return &yaml.Node{Kind: yaml.ScalarNode} // it is not YAML
	}
	return &yaml.Node{}
}

// settingLine matches the first line of another setting.
var settingLine = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*[ \t]*:`)

// whole returns an id with its prefix, adding it to a bare number.
func (f backlogRules) whole(id string) string {
	if strings.Trim(id, "0123456789.") == "" {
		return f.prefix + "-" + id
	}
	return id
}

// same returns an id without case or leading zeros, for comparison.
func (f backlogRules) same(id string) string {
	return leadingZeros.ReplaceAllString(strings.ToLower(f.whole(id)), "$1$2")
}

var leadingZeros = regexp.MustCompile(`(^|[^0-9])0+([0-9])`)
