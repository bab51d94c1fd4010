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

const (
	// maxParts is the most objects and lists in a pipeline, and records in a feed. It limits the memory for decoding
	// one to some 20 MiB.
	maxParts = 200_000
	// maxDepth is how deep objects and lists may nest. Many JSON decoders fail at 1000 levels, some at 256: they would
	// fail on all projects in the same document.
	maxDepth = 100
)

var errManyParts = domain.Errorf(domain.BadGateway, "answer is too large: over %d parts", maxParts)

var seed = maphash.MakeSeed()

// parsePipeline decodes an answer. The known fields of its stages must have their types; unknown fields
// are kept unchanged, unless the pipeline exceeds its limits.
func parsePipeline(a answer, known *domain.PipelineAnswer) (*domain.PipelineAnswer, error) {
	etag, digest := a.header.Get("ETag"), maphash.Bytes(seed, a.body)
	if known != nil && !known.EventsOnly && known.ETag == etag && known.Digest == digest {
		return known, nil
	}
	if bytes.Count(a.body, []byte("{"))+bytes.Count(a.body, []byte("[")) > maxParts {
		return nil, errManyParts
	}
	if !utf8.Valid(a.body) || nestsTooDeep(a.body) {
		return nil, notAPipeline(errors.New("no UTF-8, or nested too deep"))
	}
	var outer struct {
		domain.BoardPlace
		Left   int
		Stages json.RawMessage
	}
	_ = json.Unmarshal(a.body, &outer) // a server that is not ours may mean something else by what has another type
	var stages []wire.Stage
	if err := json.Unmarshal(outer.Stages, &stages); err != nil {
		return nil, notAPipeline(err)
	}
	if !complete(stages) {
		return nil, notAPipeline(errors.New("a field is missing"))
	}
	stages, raw, note := limit(stages, outer.Stages, max(outer.Left, 0))
	place := outer.BoardPlace
	for _, text := range []*string{&place.Layout, &place.Path, &place.Branch} {
		*text = domain.CutText(*text)
	}
	return &domain.PipelineAnswer{
		ETag: etag, Digest: digest, Board: place, Stages: wire.Stages(place.Layout, stages), Raw: raw, Note: note,
	}, nil
}

func notAPipeline(cause error) error {
	return domain.WrapError(domain.BadGateway, cause, "answer is not a pipeline")
}

// nestsTooDeep reports whether JSON nests more than maxDepth levels.
func nestsTooDeep(text []byte) bool {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			i = jsonscan.StringEnd(text, i)
		case '{', '[':
			if depth++; depth > maxDepth {
				return true
			}
		case '}', ']':
			depth--
		}
	}
	return false
}

// complete reports whether the stages have all the fields that pages need.
func complete(stages []wire.Stage) bool {
	for _, stage := range stages {
		if stage.Name == "" || stage.Items == nil {
			return false
		}
		for _, item := range stage.Items {
			if item.StoryID == "" {
				return false
			}
		}
	}
	return stages != nil
}

const (
	// maxStages and maxItems are the most stages, and items in all stages together, that are kept of a pipeline. The first
	// ones are kept; the last stages, where finished work piles up, are cut first.
	maxStages, maxItems = 50, 20_000
	// maxRaw is the largest pipeline that is passed on unchanged, in bytes.
	maxRaw = 4 << 20
)

// limit cuts the stages of a pipeline to what one project may cost the others; raw is their JSON. If anything was cut,
// the JSON is encoded again with only the known fields, and the note says so. missing is how many items the server
// already left out.
func limit(
	list []wire.Stage, raw json.RawMessage, missing int,
) (cutList []wire.Stage, cutRaw json.RawMessage, note string) {
	stages, items := len(list), 0
	for _, stage := range list {
		items += len(stage.Items)
	}
	switch {
	case stages > maxStages:
		note = fmt.Sprintf("only the first %d of %d stages are shown", maxStages, stages)
		list = list[:maxStages]
	case items > maxItems || missing > 0:
		note = fmt.Sprintf("only the first %s of %s stories are shown",
			domain.Thousands(min(items, maxItems)), domain.Thousands(items+missing))
	}
	changed, left := note != "" || len(raw) > maxRaw, maxItems
	for i := range list {
		stage := &list[i]
		if len(stage.Items) > left {
			stage.Items = stage.Items[:left]
		}
		left -= len(stage.Items)
		for _, text := range []*string{&stage.Name, &stage.Label, &stage.Fixed} {
			changed = cut(text, domain.CutText) || changed
		}
		for j := range stage.Items {
			item := &stage.Items[j]
			for _, text := range []*string{&item.StoryID, &item.StoryName, &item.Version} {
				changed = cut(text, domain.CutText) || changed
			}
			for _, reason := range []*string{item.Blocked, item.MergeFailure} {
				changed = cut(reason, domain.CutReason) || changed
			}
		}
	}
	if changed {
		raw, _ = json.Marshal(list) // strings and numbers always encode
	}
	return list, raw, note
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
		Criteria: s.Criteria, Writable: s.Writable, Label: domain.CutText(s.Label), Branch: text(s.Branch),
		Commits: s.Commits, Tasks: s.Tasks,
	}
	for i := range file.Tasks {
		file.Tasks[i].Text = domain.CutText(file.Tasks[i].Text)
	}
	if len(file.Body) > maxStoryBody {
		file.Body, file.BodyCut = domain.CutBytes(file.Body, maxStoryBody), true
	}
	switch {
	case s.FrontMatter == nil || string(s.FrontMatter) == "null":
		file.FrontMatter = json.RawMessage("{}")
	case len(s.FrontMatter) > maxFrontMatter || s.FrontMatter[0] != '{' || nestsTooDeep(s.FrontMatter):
		file.FrontMatter, file.FrontMatterError = json.RawMessage("{}"), "the project server sent front matter that "+
			"cannot be shown"
	}
	for i := range file.Commits {
		c := &file.Commits[i]
		c.Hash, c.Author, c.Subject = domain.CutText(c.Hash), domain.CutText(c.Author), domain.CutText(c.Subject)
	}
	return domain.Story{
		ID: id, Name: domain.CutText(s.StoryName), Stage: text(s.Stage), Since: wire.Time(s.SinceMS),
		Blocked: domain.CutBytes(wire.Text(s.Blocked), maxReasonBytes), BlockedSince: wire.Time(s.BlockedSinceMS),
		MergeFailure: domain.CutBytes(wire.Text(s.MergeFailure), maxReasonBytes),
		File:         file, Reachable: true,
	}, nil
}

func text(t *string) string { return domain.CutText(wire.Text(t)) }
