# fish completion of lull, printed by: lull completion fish
function __lull_offer --description 'Print what lull offers in place of the word that is being typed'
    set -l word (commandline -ct)
    set -l words (commandline -poc) "$word"
    for line in ($words[1] --offer $words[2..-1] 2>/dev/null)
        switch $line
            case ':files*'
                set -l before (string sub -s 7 -- $line)
                string replace -r '^' -- "$before" (complete -C "'' "(string sub -s (math 1 + (string length -- "$before")) -- "$word"))
            case ':program*'
                set -l at (math 1 + (string sub -s 9 -- $line))
                complete -C "$words[$at..-1]"
            case '*'
                echo $line
        end
    end
end
complete -c lull -f -a '(__lull_offer)'
