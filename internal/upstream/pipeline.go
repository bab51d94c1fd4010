package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"unicode/utf8"

	"switchyard/internal/yard"
)

// maxParts is the largest number of objects and lists in a pipeline. It bounds what decoding one takes to some 20 MiB.
const maxParts = 200_000

var errNoPipeline = yard.Errorf(yard.BadGateway, "answer is not a pipeline")

// Pipeline asks a project server for its pipeline. known is its last answer or nil, and is returned itself when
// nothing has changed since. Errors are BadGateway with a message for people, or ctx's own.
func (c *Client) Pipeline(ctx context.Context, p yard.Project, known *yard.PipelineAnswer) (*yard.PipelineAnswer, error) {
	ask := call{path: "/api/pipeline"}
	if known != nil {
		ask.etag = known.ETag
	}
	result := known
	err := c.get(ctx, p, ask, func(a answer) (err error) {
		if a.status == http.StatusOK {
			result, err = parsePipeline(a, known)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return result, nil
}

// parsePipeline reads an answer whose stages must be what they claim to be, as people look at them; what else the
// server says of them is kept as it came.
func parsePipeline(a answer, known *yard.PipelineAnswer) (*yard.PipelineAnswer, error) {
	if bytes.Count(a.body, []byte("{"))+bytes.Count(a.body, []byte("[")) > maxParts {
		return nil, yard.Errorf(yard.BadGateway, "answer is too large: over %d parts", maxParts)
	}
	var outer struct {
		Stages json.RawMessage `json:"stages"`
	}
	if !utf8.Valid(a.body) {
		return nil, errNoPipeline
	}
	if err := json.Unmarshal(a.body, &outer); err != nil {
		return nil, yard.WrapError(yard.BadGateway, err, errNoPipeline.Message)
	}
	answer := &yard.PipelineAnswer{ETag: a.header.Get("ETag"), Raw: outer.Stages}
	if known != nil && bytes.Equal(known.Raw, answer.Raw) {
		answer.Raw, answer.Stages = known.Raw, known.Stages
		return answer, nil
	}
	if err := json.Unmarshal(answer.Raw, &answer.Stages); err != nil {
		return nil, yard.WrapError(yard.BadGateway, err, errNoPipeline.Message)
	}
	if answer.Stages == nil {
		return nil, errNoPipeline
	}
	for _, stage := range answer.Stages {
		if stage.Name == "" || stage.Items == nil {
			return nil, errNoPipeline
		}
		for _, item := range stage.Items {
			if item.StoryID == "" {
				return nil, errNoPipeline
			}
		}
	}
	return answer, nil
}
