module belay

go 1.26
