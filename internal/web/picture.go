package web

import (
	"net/http"
	"slices"

	"switchyard/internal/domain"
)

// pictureTypes are the types in which no browser runs anything.
var pictureTypes = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

// WritePicture answers with a picture of the type that its content has, whatever its name. It returns NotFound for
// anything else: a stranger may have written it.
func WritePicture(w http.ResponseWriter, picture []byte) error {
	media := http.DetectContentType(picture)
	if !slices.Contains(pictureTypes, media) {
		return domain.Errorf(domain.NotFound, "that is no picture: PNG, JPEG, GIF and WebP are shown")
	}
	h := w.Header()
	h.Set("Content-Type", media)
	h.Set("Cache-Control", "private, max-age=60")
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	WriteBytes(w, http.StatusOK, picture)
	return nil
}
