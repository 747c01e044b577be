package tools

import (
	"bytes"
	"fmt"
	"image"
	_ "image/gif" // the formats whose size is told
	_ "image/jpeg"
	_ "image/png"
	"net/http"
	"path/filepath"

	"belay/message"
	"belay/tool"
)

// imageFile is the size in bytes of the largest image that a model is shown.
const imageFile = 5 << 20

// picture makes the result of reading an image, where the data is one that models take.
func picture(data []byte, path string) (tool.Result, bool) {
	kind := http.DetectContentType(data)
	switch kind {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
	default:
		return tool.Result{}, false
	}
	name := filepath.Base(path)
	if len(data) > imageFile {
		return tool.Failf(tool.Unsupported, "Make a smaller copy of it with Bash, if a program for that is there, and read that.",
			"%s is an image of %d bytes; a model is shown at most %d", shownName(name), len(data), imageFile), true
	}
	size := ""
	if c, _, err := image.DecodeConfig(bytes.NewReader(data)); err == nil {
		size = fmt.Sprintf(", %d x %d pixels", c.Width, c.Height)
	}
	what := fmt.Sprintf("%s, %d bytes%s", kind, len(data), size)
	return tool.Result{Status: tool.Success, Summary: what, Text: "[" + shownName(name) + ": " + what + "]",
		Images: []message.Image{{MediaType: kind, Data: data, Name: name}}, Stats: tool.Stats{Bytes: int64(len(data))}}, true
}
