package wire

import (
	"encoding/base64"
	"fmt"
	"slices"

	"belay/message"
)

// What every provider that takes images takes of them.
var imageTypes = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

// maxImage is the size in bytes above which an image is refused by some provider.
const maxImage = 5 << 20

// Unshown says why an image is not sent, as text to stand in its place; "" sends it. Takes says whether the model
// takes images at all.
func Unshown(img message.Image, takes bool) string {
	why := ""
	switch {
	case !takes:
		why = "this model takes no images"
	case !slices.Contains(imageTypes, img.MediaType):
		why = "it must be PNG, JPEG, GIF or WebP"
	case len(img.Data) > maxImage:
		why = fmt.Sprintf("it is larger than %d MiB", maxImage>>20)
	case len(img.Data) == 0:
		why = "it is empty"
	default:
		return ""
	}
	name := img.Name
	if name != "" {
		name += ", "
	}
	return fmt.Sprintf("[image not shown: %s%s, %d bytes: %s]", name, img.MediaType, len(img.Data), why)
}

// Shown splits the images of a result into those that are sent and the text that the model reads: its own, and why
// others are not shown.
func Shown(r *message.ToolResult, takes bool) (text string, images []message.Image) {
	text = r.Text
	for _, img := range r.Images {
		if why := Unshown(img, takes); why != "" {
			text += "\n" + why
		} else {
			images = append(images, img)
		}
	}
	return text, images
}

// DataURL is an image as the dialects of OpenAI take it.
func DataURL(img message.Image) string {
	return "data:" + img.MediaType + ";base64," + base64.StdEncoding.EncodeToString(img.Data)
}
