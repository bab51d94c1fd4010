package upstream

import (
	"net/http"

	"switchyard/internal/domain"
)

// DecodeFeed lets the fuzz target reach the decoder without a socket.
func DecodeFeed(header http.Header, body []byte) (FeedAnswer, error) {
	return decodeFeed(header, body, 0)
}

// ParsePipeline does likewise.
func ParsePipeline(body []byte) (*domain.PipelineAnswer, error) {
	return parsePipeline(answer{body: body}, nil)
}

// FeedsThroughTransport makes a client ask for feeds as for everything else, to compare what that costs.
func (c *Client) FeedsThroughTransport() { c.feeds = c.secureFeeds }
