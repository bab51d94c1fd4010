package upstream

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"unicode/utf8"

	"switchyard/internal/domain"
	"switchyard/internal/jsonscan"
	"switchyard/internal/wire"
)

// maxWorktrees is how many work trees a pipeline may name for its project, maxLinks how many places it may assign to
// stories.
const maxWorktrees, maxLinks = 50, 250

// maxRecords is the most records in a feed.
const maxRecords = 200_000

var errManyValues = domain.Errorf(domain.BadGateway, "answer is too large: over 1,000,000 values")

var seed = maphash.MakeSeed()

// parsePipeline decodes an answer. The known fields of its stages must have their types; unknown fields
// are kept unchanged, unless the pipeline exceeds its limits.
func parsePipeline(a answer, known *domain.PipelineAnswer) (*domain.PipelineAnswer, error) {
	etag, digest := a.header.Get("ETag"), maphash.Bytes(seed, a.body)
	if known != nil && !known.EventsOnly && known.ETag == etag && known.Digest == digest {
		return known, nil
	}
	switch err := jsonscan.Check(a.body); {
	case errors.Is(err, jsonscan.ErrMany):
		return nil, errManyValues
	case err != nil:
		return nil, notAPipeline(err)
	case !utf8.Valid(a.body):
		return nil, notAPipeline(errors.New("no UTF-8"))
	}
	var outer struct {
		domain.BoardPlace
		Left           int
		Stages, Faults part
		CheckedOut     part `json:"checked_out"`
	}
	_ = json.Unmarshal(a.body, &outer) // a server that is not ours may use another type to mean something else
	read, err := readStages(outer.Stages)
	if err != nil {
		return nil, notAPipeline(err)
	}
	read.items += max(outer.Left, 0)
	raw, note := read.limit(outer.Stages)
	checkedOut, _ := wire.FirstIDs(outer.CheckedOut, maxItems)
	place := outer.BoardPlace
	for _, text := range []*string{&place.Layout, &place.Path, &place.Branch, &place.Host} {
		*text = domain.CutText(*text)
	}
	place.Links = place.Links[:min(len(place.Links), maxLinks)]
	for i := range place.Links {
		for _, text := range []*string{&place.Links[i].Branch, &place.Links[i].Worktree, &place.Links[i].StoryID} {
			*text = domain.CutText(*text)
		}
	}
	place.Worktrees = place.Worktrees[:min(len(place.Worktrees), maxWorktrees)]
	return &domain.PipelineAnswer{
		ETag: etag, Digest: digest, Board: place, Stages: wire.Stages(place.Layout, read.stages),
		Raw: raw, Note: note, Faults: wire.Faults(outer.Faults), CheckedOut: checkedOut,
	}, nil
}

func notAPipeline(cause error) error {
	return domain.WrapError(domain.BadGateway, cause, "answer is not a pipeline")
}

// part is JSON that shares the memory of what contains it.
type part []byte

func (p *part) UnmarshalJSON(text []byte) error {
	*p = text
	return nil
}

const (
	// maxStages and maxItems are how many stages, and items in all stages together, are kept of a pipeline. The first
	// ones are kept; the last stages, where finished work piles up, are cut first.
	maxStages, maxItems = 50, 20_000
	// maxRaw is the largest pipeline that is passed on unchanged, in bytes.
	maxRaw = 4 << 20
)

// stagesRead are the stages of a pipeline that are kept, and how many stages and items it has.
type stagesRead struct {
	stages       []wire.Stage
	count, items int
}

// readStages decodes one item at a time, so that a pipeline takes no more memory than what is kept of it. It is an
// error if a field that pages need is missing.
func readStages(text []byte) (read stagesRead, err error) {
	r := jsonscan.NewReader(text)
	if r.Kind() != '[' {
		return read, errors.New("no stages")
	}
	read.stages = []wire.Stage{}
	left := maxItems
	for range r.Parts() {
		var stage struct {
			wire.Stage
			Items part `json:"items"`
		}
		if err = json.Unmarshal(r.Value(), &stage); err != nil {
			return read, err
		}
		items := jsonscan.NewReader(stage.Items)
		if stage.Name == "" || items.Kind() != '[' {
			return read, errMissing
		}
		if read.count++; read.count > maxStages {
			left = 0
		}
		stage.Stage.Items = []wire.Item{}
		for range items.Parts() {
			var item wire.Item
			if err = json.Unmarshal(items.Value(), &item); err != nil {
				return read, err
			}
			if item.StoryID == "" {
				return read, errMissing
			}
			if read.items++; left > 0 {
				stage.Stage.Items = append(stage.Stage.Items, item)
				left--
			}
		}
		if read.count <= maxStages {
			read.stages = append(read.stages, stage.Stage)
		}
	}
	return read, r.End()
}

var errMissing = errors.New("a field is missing")

// limit cuts the texts of a pipeline to what one project may cost the others. If anything was cut, its JSON is encoded
// again with only the known fields, and the note says so.
func (read *stagesRead) limit(text []byte) (raw json.RawMessage, note string) {
	kept := 0
	for _, stage := range read.stages {
		kept += len(stage.Items)
	}
	switch {
	case read.count > maxStages:
		note = fmt.Sprintf("only the first %d of %d stages are shown", maxStages, read.count)
	case read.items > kept:
		note = fmt.Sprintf("only the first %s of %s stories are shown",
			domain.Thousands(kept), domain.Thousands(read.items))
	}
	changed := note != "" || len(text) > maxRaw
	for i := range read.stages {
		stage := &read.stages[i]
		for _, text := range []*string{&stage.Name, &stage.Label, &stage.Fixed} {
			changed = cut(text, domain.CutText) || changed
		}
		for j := range stage.Items {
			item := &stage.Items[j]
			for _, text := range []*string{&item.StoryID, &item.StoryName, &item.Version, item.Worktree, item.Branch} {
				changed = cut(text, domain.CutText) || changed
			}
			for _, text := range item.Work.Texts() {
				changed = cut(text, domain.CutText) || changed
			}
			for _, reason := range []*string{item.Blocked, item.MergeFailure, item.Fault} {
				changed = cut(reason, domain.CutReason) || changed
			}
		}
	}
	if changed {
		raw, _ = json.Marshal(read.stages) // strings and numbers always encode
		return raw, note
	}
	return bytes.Clone(text), note
}

func cut(text *string, shorten func(string) string) bool {
	if text == nil || len(*text) <= domain.MaxText {
		return false
	}
	short := shorten(*text)
	changed := len(short) < len(*text)
	*text = short
	return changed
}

// Limits of a story, which exceed those of our own project servers.
const (
	maxStoryBody   = 256 << 10
	maxReasonBytes = 64 << 10
	maxFrontMatter = 512 << 10 // 64 KiB of YAML with its aliases expanded
)

var errNoStory = domain.Errorf(domain.BadGateway, "answers with something other than a story")

// decodeStory decodes an answer and cuts texts and lists that are too long.
func decodeStory(a answer, id string) (domain.Story, error) {
	var s wire.Story
	if err := json.Unmarshal(a.body, &s); err != nil || s.StoryID != id {
		return domain.Story{}, domain.WrapError(domain.BadGateway, errors.Join(errNoStory, err), errNoStory.Message)
	}
	file := &domain.StoryFile{
		Path: text(s.Path), Version: text(s.Version), FrontMatter: s.FrontMatter,
		FrontMatterError: text(s.FrontMatterError), Body: wire.Text(s.Body), BodyCut: s.BodyCut,
		Criteria: s.Criteria, Writable: s.Writable, Merges: s.Merges, Label: domain.CutText(s.Label), Branch: text(s.Branch),
		Worktree: text(s.Worktree), BaseStage: text(s.BaseStage), Work: s.Work.Places(), Commits: s.Commits, Tasks: s.Tasks,
		Fault: text(s.Fault), DependsOn: s.DependsOn, WaitsFor: s.WaitsFor,
	}
	for i := range file.Tasks {
		task := &file.Tasks[i]
		task.Text, task.Path = domain.CutText(task.Text), domain.CutText(task.Path)
	}
	if len(file.Body) > maxStoryBody {
		file.Body, file.BodyCut = domain.CutBytes(file.Body, maxStoryBody), true
	}
	switch {
	case s.FrontMatter == nil || string(s.FrontMatter) == "null":
		file.FrontMatter = json.RawMessage("{}")
	case len(s.FrontMatter) > maxFrontMatter || s.FrontMatter[0] != '{' || jsonscan.Check(s.FrontMatter) != nil:
		file.FrontMatter, file.FrontMatterError = json.RawMessage("{}"), "the project server sent front matter that "+
			"cannot be shown"
	}
	for i := range file.Commits {
		c := &file.Commits[i]
		c.Hash, c.Author, c.Subject = domain.CutText(c.Hash), domain.CutText(c.Author), domain.CutText(c.Subject)
	}
	return domain.Story{
		ID: id, Name: domain.CutText(s.StoryName), Stage: text(s.Stage), Since: wire.Time(s.SinceMS),
		SinceAtLeast: s.SinceAtLeast,
		Blocked:      domain.CutBytes(wire.Text(s.Blocked), maxReasonBytes), BlockedSince: wire.Time(s.BlockedSinceMS),
		MergeFailure: domain.CutBytes(wire.Text(s.MergeFailure), maxReasonBytes),
		File:         file, Reachable: true,
	}, nil
}

func text(t *string) string { return domain.CutText(wire.Text(t)) }
