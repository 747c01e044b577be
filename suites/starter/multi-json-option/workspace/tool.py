import sys
import facts
import show

if __name__ == "__main__":
    print(show.as_text(facts.collect()))
