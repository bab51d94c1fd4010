package upstream

import (
	"net/http"

	"switchyard/internal/domain"
)

// DecodeFeed lets the fuzz target call the decoder without a socket.
func DecodeFeed(header http.Header, body []byte) (FeedAnswer, error) {
	return decodeFeed(header, body, 0)
}

// ParsePipeline does the same for pipelines.
func ParsePipeline(body []byte) (*domain.PipelineAnswer, error) {
	return parsePipeline(answer{body: body}, nil)
}
