package loop

import (
	"reflect"

	"belay/journal"
)

// decoded is an event whose payload is decoded once for all who follow the journal.
type decoded struct {
	journal.Event
	payload any
}

// Decode is Event.Decode. Who asks for the same struct as the one before gets the same contents, to read only.
func (d *decoded) Decode(v any) error {
	if d.payload != nil && reflect.TypeOf(d.payload) == reflect.TypeOf(v) {
		reflect.ValueOf(v).Elem().Set(reflect.ValueOf(d.payload).Elem())
		return nil
	}
	if err := d.Event.Decode(v); err != nil {
		return err
	}
	kept := reflect.New(reflect.TypeOf(v).Elem())
	kept.Elem().Set(reflect.ValueOf(v).Elem())
	d.payload = kept.Interface()
	return nil
}
